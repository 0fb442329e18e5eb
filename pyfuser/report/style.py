"""How the HTML report looks, in light and dark schemes alike."""

PAGE = """
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 1280px; padding: 24px 32px 64px;
  background: Canvas; color: CanvasText; }
"""
"""For a page of its own; a notebook has its colours."""

REPORT = """
.pyfuser { font: 14px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
.pyfuser h1 { font-size: 22px; margin: 0 0 4px; }
.pyfuser h2 { font-size: 16px; margin: 28px 0 8px; }
.pyfuser p { margin: 2px 0; }
.pyfuser .quiet { opacity: .7; }
.pyfuser .run { display: grid; grid-template-columns: 7em minmax(0, 1fr); gap: 3px 10px;
  align-items: center; margin: 10px 0; }
.pyfuser .run > :first-child { grid-row: span 2; }
.pyfuser .row { display: flex; gap: 1px; height: 20px; min-width: 0; overflow: hidden; }
.pyfuser .row a { display: block; min-width: 1px; border-radius: 3px; color: #fff;
  font-size: 11px; line-height: 20px; text-align: center; text-decoration: none; overflow: hidden;
  white-space: nowrap; }
.pyfuser .calls { flex-wrap: wrap; gap: 2px; height: auto; }
.pyfuser .calls a { flex: none; width: 18px; height: 12px; }
.pyfuser a:hover { filter: brightness(1.2); }
.pyfuser details.kernel { border-left: 5px solid; border-radius: 4px; margin: 10px 0;
  padding: 6px 12px; background: rgba(128, 128, 128, .09); }
.pyfuser details.kernel > summary { cursor: pointer; font-weight: 600; }
.pyfuser .facts { margin: 4px 0 6px; }
.pyfuser .both { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 12px;
  margin-top: 8px; }
@media (max-width: 800px) { .pyfuser .both { grid-template-columns: minmax(0, 1fr); } }
.pyfuser pre { margin: 2px 0 8px; padding: 8px 10px; border-radius: 4px; overflow: auto;
  max-height: 32em; font: 12px/1.45 ui-monospace, monospace; white-space: pre-wrap;
  background: rgba(128, 128, 128, .13); color: inherit; }
.pyfuser ul { margin: 4px 0; padding-left: 20px; }
.pyfuser li { margin: 6px 0; }
"""
