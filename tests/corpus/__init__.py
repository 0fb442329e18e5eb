"""What the compiler makes of many programs, as text: to see whether a change changes any of it."""
