"""The readable twin of the kernel, one noun a file; `pandomq.kernel._plain` names what it offers."""
