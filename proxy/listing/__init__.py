"""Topic lists through the proxy: one broker request serves many clients, within memory limits."""
