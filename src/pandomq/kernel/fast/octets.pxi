# Numbers in bytes: big-endian as AMQP has them, little-endian as the log has them.
# Compilers turn these into single loads and stores.

cdef extern from *:
    """
    #include <stdint.h>
    typedef unsigned char octet;
    static inline uint16_t load16(const octet *p) { return (uint16_t)((p[0] << 8) | p[1]); }
    static inline uint32_t load32(const octet *p) {
        return ((uint32_t)p[0] << 24) | ((uint32_t)p[1] << 16) | ((uint32_t)p[2] << 8) | (uint32_t)p[3];
    }
    static inline uint64_t load64(const octet *p) { return ((uint64_t)load32(p) << 32) | load32(p + 4); }
    static inline octet *store8(octet *p, uint8_t v) { p[0] = v; return p + 1; }
    static inline octet *store16(octet *p, uint16_t v) { p[0] = (octet)(v >> 8); p[1] = (octet)v; return p + 2; }
    static inline octet *store32(octet *p, uint32_t v) {
        p[0] = (octet)(v >> 24); p[1] = (octet)(v >> 16); p[2] = (octet)(v >> 8); p[3] = (octet)v; return p + 4;
    }
    static inline octet *store64(octet *p, uint64_t v) { return store32(store32(p, (uint32_t)(v >> 32)), (uint32_t)v); }
    static inline octet *little16(octet *p, uint16_t v) { p[0] = (octet)v; p[1] = (octet)(v >> 8); return p + 2; }
    static inline octet *little32(octet *p, uint32_t v) {
        p[0] = (octet)v; p[1] = (octet)(v >> 8); p[2] = (octet)(v >> 16); p[3] = (octet)(v >> 24); return p + 4;
    }
    static inline octet *little64(octet *p, uint64_t v) {
        return little32(little32(p, (uint32_t)v), (uint32_t)(v >> 32));
    }
    static inline uint16_t from_little16(const octet *p) { return (uint16_t)(p[0] | (p[1] << 8)); }
    static inline uint32_t from_little32(const octet *p) {
        return (uint32_t)p[0] | ((uint32_t)p[1] << 8) | ((uint32_t)p[2] << 16) | ((uint32_t)p[3] << 24);
    }
    static inline uint64_t from_little64(const octet *p) {
        return (uint64_t)from_little32(p) | ((uint64_t)from_little32(p + 4) << 32);
    }
    static inline int highest_bit(uint64_t v) { return 63 - __builtin_clzll(v); }
    /* Compilers take a function that only prefetches for one without effect, and drop calls of it: the empty asm says
       that it has one. */
    static inline void fetch_line(const void *p) {
        __builtin_prefetch(p, 1, 3);
        __asm__ volatile("");
    }
    static inline void fetch_ahead(const void *p) {
        fetch_line(p);
        fetch_line((const char *)p + 64);
    }
    static inline void fetch_lines(const void *first, const void *last) {
        for (const char *p = (const char *)first; p < (const char *)last; p += 64) fetch_line(p);
        fetch_line(last);
    }
    """
    ctypedef unsigned char octet
    uint16_t load16(const octet* p) nogil
    uint32_t load32(const octet* p) nogil
    uint64_t load64(const octet* p) nogil
    octet* store8(octet* p, uint8_t v) nogil
    octet* store16(octet* p, uint16_t v) nogil
    octet* store32(octet* p, uint32_t v) nogil
    octet* store64(octet* p, uint64_t v) nogil
    octet* little16(octet* p, uint16_t v) nogil
    octet* little32(octet* p, uint32_t v) nogil
    octet* little64(octet* p, uint64_t v) nogil
    uint16_t from_little16(const octet* p) nogil
    uint32_t from_little32(const octet* p) nogil
    uint64_t from_little64(const octet* p) nogil
    int highest_bit(uint64_t v) nogil  # of a number that is not 0
    void fetch_ahead(const void* p) nogil  # two cache lines that will be used soon
    void fetch_line(const void* p) nogil
    void fetch_lines(const void* first, const void* last) nogil  # all lines between these addresses


cdef inline octet* store_bytes(octet* p, const octet* data, size_t size) noexcept nogil:
    memcpy(p, data, size)
    return p + size


cdef inline const octet* octets_of(bytes data) noexcept:
    return <const octet*>PyBytes_AS_STRING(data)


cdef extern from "Python.h":
    int _PyBytes_Resize(PyObject** data, Py_ssize_t size) except -1
