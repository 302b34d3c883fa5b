# The CRC-32 of zlib, many times as fast where the processor has carry-less multiplication: everything on disk is
# checked whenever it is written or read, and that is a part of the cost of each message.
#
# Sixteen octets are a polynomial over two elements; a block that is n bits before others counts as itself times x^n,
# modulo the CRC's polynomial. So four blocks are moved along the data, each time multiplied by x^512 (FOLD_FOUR), and
# added to the next ones; then they are added to each other (FOLD_ONE), and the rest is reduced with Barrett's method.

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    #define FOLDS __attribute__((target("pclmul,sse4.1")))

    static int crc_can_fold(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
    }

    FOLDS static inline __m128i crc_block(const octet *p) { return _mm_loadu_si128((const __m128i *)p); }

    FOLDS static inline __m128i crc_put_onto(__m128i moved, __m128i by, __m128i next) {
        __m128i low = _mm_clmulepi64_si128(moved, by, 0x00);
        __m128i high = _mm_clmulepi64_si128(moved, by, 0x11);
        return _mm_xor_si128(_mm_xor_si128(low, high), next);
    }

    /* The state is the inverted CRC. There are at least 64 octets, and whole blocks of 16. */
    FOLDS static uint32_t crc_fold(const octet *p, size_t size, uint32_t state) {
        const __m128i FOLD_FOUR = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
        const __m128i FOLD_ONE = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
        const __m128i FOLD_HALF = _mm_set_epi64x(0, 0x163cd6124);
        const __m128i BARRETT = _mm_set_epi64x(0x1f7011641, 0x1db710641);
        const __m128i WORDS = _mm_set_epi32(0, -1, 0, -1);
        __m128i a = _mm_xor_si128(crc_block(p), _mm_cvtsi32_si128((int)state));
        __m128i b = crc_block(p + 16), c = crc_block(p + 32), d = crc_block(p + 48), part;
        for (p += 64, size -= 64; size >= 64; p += 64, size -= 64) {
            a = crc_put_onto(a, FOLD_FOUR, crc_block(p));
            b = crc_put_onto(b, FOLD_FOUR, crc_block(p + 16));
            c = crc_put_onto(c, FOLD_FOUR, crc_block(p + 32));
            d = crc_put_onto(d, FOLD_FOUR, crc_block(p + 48));
        }
        a = crc_put_onto(crc_put_onto(crc_put_onto(a, FOLD_ONE, b), FOLD_ONE, c), FOLD_ONE, d);
        for (; size >= 16; p += 16, size -= 16) a = crc_put_onto(a, FOLD_ONE, crc_block(p));
        a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, FOLD_ONE, 0x10));
        part = _mm_clmulepi64_si128(_mm_and_si128(a, WORDS), FOLD_HALF, 0x00);
        a = _mm_xor_si128(_mm_srli_si128(a, 4), part);
        part = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(a, WORDS), BARRETT, 0x10), WORDS);
        a = _mm_xor_si128(a, _mm_clmulepi64_si128(part, BARRETT, 0x00));
        return (uint32_t)_mm_extract_epi32(a, 1);
    }
    #else
    static int crc_can_fold(void) { return 0; }
    static uint32_t crc_fold(const octet *p, size_t size, uint32_t state) { return state; }
    #endif
    """
    bint crc_can_fold() nogil
    uint32_t crc_fold(const octet* p, size_t size, uint32_t state) nogil


cdef enum:
    CRC_FOLDED_MIN = 64
    CRC_POLYNOMIAL = 0xEDB88320

cdef bint CRC_FOLDS = crc_can_fold()
cdef uint32_t CRC_TABLE[256]


cdef void crc_fill_table() noexcept:
    cdef uint32_t value
    cdef int at, bit
    for at in range(256):
        value = at
        for bit in range(8):
            value = (value >> 1) ^ (<uint32_t>CRC_POLYNOMIAL if value & 1 else 0)
        CRC_TABLE[at] = value


crc_fill_table()


cdef uint32_t crc_of(const octet* data, size_t size, uint32_t value) noexcept nogil:
    # For processors that can fold.
    cdef uint32_t state = ~value
    cdef size_t folded = size & ~<size_t>15 if size >= CRC_FOLDED_MIN else 0
    cdef size_t at
    if folded:
        state = crc_fold(data, folded, state)
    for at in range(folded, size):
        state = CRC_TABLE[(state ^ data[at]) & 0xFF] ^ (state >> 8)
    return ~state


def crc32(data, uint32_t value=0, /):
    cdef Py_buffer view
    cdef uint32_t answer
    if not CRC_FOLDS:
        return zlib_crc32(data, value)
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    answer = crc_of(<const octet*>view.buf, view.len, value)
    PyBuffer_Release(&view)
    return answer
