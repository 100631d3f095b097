"""The physics of serving: prefill, decode, queues."""
