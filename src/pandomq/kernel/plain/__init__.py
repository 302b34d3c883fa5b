"""The readable twin of the kernel, one noun a file; `pandomq.kernel._plain` lists its public names."""
