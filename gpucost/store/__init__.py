"""Where refreshed prices are kept: a folder of snapshots, and the client that fetches what goes into one."""
