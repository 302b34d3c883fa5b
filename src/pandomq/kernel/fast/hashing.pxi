# One fast hash of octets for all tables of the kernel. Nothing that is visible from outside depends on the hash, so it
# may differ from one process to the next; it does, so that a client cannot choose names that collide.

cdef extern from *:
    """
    static uint64_t hash_seed_first = 0x9E3779B97F4A7C15u;
    static uint64_t hash_seed_second = 0xC2B2AE3D27D4EB4Fu;

    static inline uint64_t folded(uint64_t a, uint64_t b) {
        __uint128_t product = (__uint128_t)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    }

    static inline uint64_t hash_octets(const octet *p, size_t size) {
        uint64_t first = 0, last = 0, mixed = hash_seed_first ^ size;
        for (; size > 16; size -= 16, p += 16)
            mixed = folded(load64(p) ^ hash_seed_second, load64(p + 8) ^ mixed);
        if (size >= 8) {
            first = load64(p);
            last = load64(p + size - 8);
        } else if (size >= 4) {
            first = load32(p);
            last = load32(p + size - 4);
        } else if (size) {
            first = (uint64_t)p[0] << 16 | (uint64_t)p[size >> 1] << 8 | p[size - 1];
        }
        return folded(first ^ hash_seed_second, last ^ mixed);
    }
    """
    uint64_t hash_seed_first
    uint64_t hash_seed_second
    uint64_t hash_octets(const octet* p, size_t size) nogil

# Python has chosen its own seed at the start of the process.
hash_seed_first ^= <uint64_t><Py_ssize_t>hash(b"first")
hash_seed_second ^= <uint64_t><Py_ssize_t>hash(b"second")
