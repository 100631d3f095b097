"""The engine of serving: offers meet the physics of serving, and both meet a demand.

Physics runs once per distinct accelerator, node and layout; prices, replicas and months follow as arrays over offers.
"""
