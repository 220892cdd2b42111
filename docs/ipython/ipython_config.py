"""How cells run while the site is built: errors as one line, without the frames and paths of this machine."""

c = get_config()  # noqa: F821  (IPython's)
c.InteractiveShell.xmode = "Minimal"
c.IPKernelApp.log_level = "ERROR"  # each kernel warns that this machine talks to itself unencrypted
