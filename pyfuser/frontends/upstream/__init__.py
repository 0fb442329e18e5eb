"""Hooks into an installed PyKokkos: its calls are traced where fusion is on, else it is as it was.

`install` has the list of what is hooked. Each other module knows one thing about PyKokkos:
`probes` (whether the hooks fit), `functions` (how to get between a program and a function it
has imported already), `views` (whose memory is whose, and who reads it), `policies`, `arguments`
and `dispatch` (a call). What they cannot say in our terms PyKokkos runs itself, after everything
that is pending.
"""
