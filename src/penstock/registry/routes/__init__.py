"""The paths of the registry, a module for each noun. A handler asks who may, finds what is named, and answers."""
