"""The images, built without a container engine, and every entry point in them run."""
