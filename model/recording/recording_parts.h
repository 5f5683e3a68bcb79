/* What reading (recording.c) and writing (recording_out.c) a recording share. */
#ifndef MODEL_RECORDING_RECORDING_PARTS_H
#define MODEL_RECORDING_RECORDING_PARTS_H

#include <stdint.h>

#include "model/recording/recording.h"

enum {
    RECORDING_HEADER = 32,
    RECORDING_TAG = 0x31707471, /* "qtp1" */
    RECORDING_BEGINS = 1,       /* flag of an entry */
    RECORDING_WINDOW_LOG = 21,
    RECORDING_RAW_MAX = 64 << 20,
    RECORDING_PACKED_MAX = RECORDING_RAW_MAX + (1 << 20)
};

struct recording_entry {
    int64_t offset; /* of its header */
    int64_t at_ms;
    uint32_t packed, raw, sum;
    bool begins;
};

struct recording_index {
    struct recording_entry *entries;
    int n, cap;
    int64_t end;  /* behind the last whole entry */
    int64_t size; /* of the file */
};

void recording_put32(unsigned char *p, uint32_t v);
void recording_put64(unsigned char *p, uint64_t v);
uint32_t recording_crc(uint32_t crc, const void *bytes, size_t len); /* the first crc is 0 */
void recording_header(unsigned char *h);                             /* of the file */
/* Reads all headers. False = the file is no recording, or a system call failed. Then checks the sum
 * of whole entries, from the last one backwards, until one is good. */
bool recording_scan(int fd, const char *file, struct recording_index *out, struct err *e)
    __attribute__((warn_unused_result));
/* The packed bytes of an entry, checked. */
bool recording_load(int fd, const char *file, const struct recording_entry *p,
                    unsigned char **packed, struct err *e) __attribute__((warn_unused_result));

#endif
