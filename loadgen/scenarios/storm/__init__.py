"""The storm: all clients ask for the topics of a namespace at once."""
