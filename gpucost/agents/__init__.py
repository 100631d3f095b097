"""A face for agents: questions as tools of the Model Context Protocol, with compact answers (extra `mcp`)."""
