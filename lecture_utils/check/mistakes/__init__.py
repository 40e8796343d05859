"""What people get wrong, one module a lesson: each mistake a small function that runs, a name, hints."""
