/* cuBLASLt as far as it is used: descriptors are kept and looked at, products are computed by whom `lt_compute` names, if by anyone. What
   cuBLASLt refuses is refused: attributes of another size, steps that are too small, addresses less aligned than was said. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID = 7, NOT_SUPPORTED = 15 };

struct desc { int computed, scale; int32_t turned[2]; uint32_t epilogue; void *vector, *aux; int64_t aux_step; };
struct layout { int type; uint64_t rows, columns; int64_t step; int32_t batch; int64_t offset; };
struct preference { uint64_t room; uint32_t aligned[4]; };
struct algorithm { uint64_t data[8]; };
struct heuristic { struct algorithm algorithm; size_t workspace; int state; float waves; int reserved[4]; };
struct product {
  int type, computed, turned[2], batch, epilogue;
  int64_t m, n, k, steps[3], offsets[3];
  const void *alpha, *a, *b, *beta; void *out, *vector, *aux; int64_t aux_step; void* stream;
};
enum { VECTOR = 4 | 16 | 256 | 512, AUX = 128, OF_RELU = 2 | 8 };

int (*lt_compute)(const struct product*) = 0;
int lt_refuses = 0, lt_fails = 0, lt_planned = 0, lt_alive = 0;
size_t lt_workspace = 1000;

static int put(void* to, size_t size, const void* from, size_t given) {
  if (size != given) return INVALID;
  memcpy(to, from, size);
  return OK;
}

int cublasLtMatmulDescCreate(struct desc** d, int computed, int scale) {
  *d = calloc(1, sizeof **d);
  (*d)->computed = computed, (*d)->scale = scale, (*d)->epilogue = 1;
  ++lt_alive;
  return OK;
}
int cublasLtMatmulDescDestroy(struct desc* d) { return free(d), --lt_alive, OK; }
int cublasLtMatmulDescSetAttribute(struct desc* d, int what, const void* from, size_t size) {
  switch (what) {
    case 3: return put(&d->turned[0], 4, from, size);
    case 4: return put(&d->turned[1], 4, from, size);
    case 7: return put(&d->epilogue, 4, from, size);
    case 8: return put(&d->vector, sizeof(void*), from, size);
    case 11: return put(&d->aux, sizeof(void*), from, size);
    case 12: return put(&d->aux_step, 8, from, size);
  }
  return INVALID;
}

int cublasLtMatrixLayoutCreate(struct layout** l, int type, uint64_t rows, uint64_t columns, int64_t step) {
  *l = calloc(1, sizeof **l);
  (*l)->type = type, (*l)->rows = rows, (*l)->columns = columns, (*l)->step = step, (*l)->batch = 1;
  ++lt_alive;
  return OK;
}
int cublasLtMatrixLayoutDestroy(struct layout* l) { return free(l), --lt_alive, OK; }
int cublasLtMatrixLayoutSetAttribute(struct layout* l, int what, const void* from, size_t size) {
  if (what == 5) return put(&l->batch, 4, from, size);
  return what == 6 ? put(&l->offset, 8, from, size) : INVALID;
}

int cublasLtMatmulPreferenceCreate(struct preference** p) {
  *p = calloc(1, sizeof **p);
  for (int i = 0; i < 4; ++i) (*p)->aligned[i] = 256;
  ++lt_alive;
  return OK;
}
int cublasLtMatmulPreferenceDestroy(struct preference* p) { return free(p), --lt_alive, OK; }
int cublasLtMatmulPreferenceSetAttribute(struct preference* p, int what, const void* from, size_t size) {
  if (what == 1) return put(&p->room, 8, from, size);
  return what >= 5 && what <= 8 ? put(&p->aligned[what - 5], 4, from, size) : INVALID;
}

/* The epilogues that cublasLt.h names, in float16, bfloat16 and float32, and the bias in float64, too. */
static int epilogue_sound(const struct desc* d, const struct layout* c) {
  static const uint32_t all[] = {1, 2, 130, 4, 6, 134, 136, 152, 32, 160, 36, 164, 192, 208, 256, 512};
  unsigned i = 0;
  while (i < sizeof all / sizeof *all && all[i] != d->epilogue) ++i;
  if (i == sizeof all / sizeof *all || (d->epilogue != 1 && c->batch != 1)) return 0;
  if (c->type == 1 && d->epilogue != 1 && d->epilogue != 4) return 0;
  if (d->epilogue & VECTOR && !d->vector) return 0;
  if (!(d->epilogue & AUX)) return 1;
  return d->aux && (uintptr_t)d->aux % 16 == 0 && d->aux_step >= (int64_t)c->rows && d->aux_step % (d->epilogue & OF_RELU ? 128 : 8) == 0;
}

static int sound(const struct desc* d, const struct layout* a, const struct layout* b, const struct layout* c) {
  const uint64_t k = d->turned[0] ? a->rows : a->columns;
  return (d->turned[0] ? a->columns : a->rows) == c->rows && (d->turned[1] ? b->columns : b->rows) == k &&
         (d->turned[1] ? b->rows : b->columns) == c->columns && a->step >= (int64_t)a->rows && b->step >= (int64_t)b->rows &&
         c->step >= (int64_t)c->rows && a->batch == c->batch && b->batch == c->batch && a->type == c->type &&
         b->type == c->type && d->scale == (c->type == 1) && epilogue_sound(d, c);
}

int cublasLtMatmulAlgoGetHeuristic(void* handle, struct desc* d, struct layout* a, struct layout* b, struct layout* c,
                                   struct layout* out, struct preference* p, int wanted, struct heuristic* found, int* count) {
  *count = 0;
  if (!handle || c != out || wanted < 1 || !sound(d, a, b, c)) return INVALID;
  if (lt_refuses || p->room < lt_workspace) return NOT_SUPPORTED;
  memset(found, 0, sizeof *found);
  for (int i = 0; i < 4; ++i) found->algorithm.data[i] = p->aligned[i];
  found->algorithm.data[4] = (uintptr_t)d->vector & -(uintptr_t)d->vector, found->algorithm.data[5] = (uintptr_t)d->aux & -(uintptr_t)d->aux;
  found->workspace = lt_workspace;
  ++lt_planned;
  *count = 1;
  return OK;
}

int cublasLtMatmul(void* handle, struct desc* d, const void* alpha, const void* a, struct layout* la, const void* b,
                   struct layout* lb, const void* beta, const void* c, struct layout* lc, void* out, struct layout* lo,
                   const struct algorithm* how, void* space, size_t bytes, void* stream) {
  const void* at[4] = {a, b, c, out};
  for (int i = 0; i < 4; ++i)
    if ((uintptr_t)at[i] % how->data[i]) return INVALID;
  if (d->epilogue & VECTOR && (uintptr_t)d->vector % how->data[4]) return INVALID;
  if (d->epilogue & AUX && (uintptr_t)d->aux % how->data[5]) return INVALID;
  if (lt_fails) return lt_fails;
  if (!handle || c != out || lc != lo || bytes < lt_workspace || (bytes && !space) || !sound(d, la, lb, lc)) return INVALID;
  if (lt_compute) memset(space, 0xAB, bytes);
  const struct product p = {lc->type, d->computed, {d->turned[0], d->turned[1]}, lc->batch, (int)d->epilogue,
                            (int64_t)lc->rows, (int64_t)lc->columns, (int64_t)(d->turned[0] ? la->rows : la->columns),
                            {la->step, lb->step, lc->step}, {la->offset, lb->offset, lc->offset},
                            alpha, a, b, beta, out, d->epilogue & VECTOR ? d->vector : 0, d->epilogue & AUX ? d->aux : 0,
                            d->aux_step, stream};
  return lt_compute ? lt_compute(&p) : OK;
}
