/* cuDNN's recurrent layers as far as they are used: descriptors are kept, and every argument of a call is looked at; what is to be
   computed goes to whom `rnn_compute` names. Statuses are those of cuDNN 9.28 where that was asked: a projection of size 0, sequences
   that are not in order, and bfloat16 computed in bfloat16 are refused. Parameters lie with gaps between them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, NO_DEVICE = 1001, BAD = 2000, NOT_SUPPORTED = 3000, MOST = 64, LSTM = 2, GRU = 3 };
enum { NEW = 1, PULLED = 2 };

struct rnn { int algo, mode, bias, dir, entering, type, computed, math, input, hidden, proj, layers; unsigned flags; };
struct data { int type, layout, steps, batch, width, lengths[MOST]; };
struct tensor { int type, dims, dim[4], stride[4]; };
struct kept { uint64_t magic; int state, ticket; }; /* the ticket tells which forward it is of */
struct call {
  int kind, mode, dirs, type, math, input, hidden, proj, layers, steps, batch, training, ticket;
  const int* lengths; const int64_t* starts;
  const void *x, *hx, *cx, *weights, *dy, *dhy, *dcy;
  void *y, *hy, *cy, *dx, *dhx, *dcx, *dweights, *stream;
};
static const uint64_t MAGIC = 0x6b65707462796d65;
static int handle_made = 0, tickets = 0;
static void* current_stream = 0;

int (*rnn_compute)(const struct call*) = 0;
int rnn_alive = 0, rnn_fails = 0, rnn_refuses = 0;

static int gates(const struct rnn* r) { return r->mode == LSTM ? 4 : r->mode == GRU ? 3 : 1; }
static int places(const struct rnn* r) { return r->layers * (r->dir + 1); }
static size_t item(int type) { return type == 0 ? 4 : type == 1 ? 8 : 2; }
static int64_t columns(const struct rnn* r, int place) { return place <= r->dir ? r->input : (int64_t)r->proj * (r->dir + 1); }

/* Where w_ih, w_hh, b_ih, b_hh and w_hr of each place begin, -1 for none; the number of elements in all. Gaps of 3 and of 5. */
static int64_t starts_of(const struct rnn* r, int64_t* starts) {
  const int64_t rows = (int64_t)gates(r) * r->hidden;
  int64_t end = 0;
  for (int p = 0; p < places(r); ++p) {
    int64_t* own = starts + 5 * p;
    own[0] = end, own[1] = own[0] + rows * columns(r, p), own[4] = r->proj < r->hidden ? own[1] + rows * r->proj + 3 : -1;
    end = own[1] + rows * r->proj + 3 + (own[4] < 0 ? 0 : (int64_t)r->proj * r->hidden);
  }
  for (int p = 0; p < places(r); ++p) {
    starts[5 * p + 2] = r->bias ? end : -1, starts[5 * p + 3] = r->bias ? end + rows : -1;
    if (r->bias) end += 2 * rows;
  }
  return end + 5;
}

const char* cudnnGetErrorString(int status) { return status == BAD ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_OTHER"; }
int cudnnCreate(void** h) { return rnn_fails == NO_DEVICE ? NO_DEVICE : (*h = &handle_made, OK); }
int cudnnSetStream(void* h, void* stream) { return h == &handle_made ? (current_stream = stream, OK) : BAD; }

#define KIND(name, type)                                                                               \
  int cudnnCreate##name##Descriptor(struct type** d) { return *d = calloc(1, sizeof **d), ++rnn_alive, OK; } \
  int cudnnDestroy##name##Descriptor(struct type* d) { return free(d), --rnn_alive, OK; }
KIND(RNN, rnn)
KIND(RNNData, data)
KIND(Tensor, tensor)

int cudnnSetRNNDescriptor_v8(struct rnn* r, int algo, int mode, int bias, int dir, int entering, int type, int computed, int math,
                             int input, int hidden, int proj, int layers, void* dropout, unsigned flags) {
  if (rnn_refuses) return NOT_SUPPORTED;
  if (algo || mode < 0 || mode > 3 || (bias && bias != 2) || dir < 0 || dir > 1 || entering || math < 0 || math > 3 || input < 1 ||
      hidden < 1 || layers < 1 || proj < 1 || proj > hidden || dropout || flags)
    return BAD;
  const int pair = type * 10 + computed;
  if (pair != 0 && pair != 11 && pair != 20 && pair != 22 && pair != 90) return NOT_SUPPORTED;
  if (proj != hidden && mode != LSTM) return NOT_SUPPORTED;
  *r = (struct rnn){algo, mode, bias, dir, entering, type, computed, math, input, hidden, proj, layers, flags};
  return OK;
}

int cudnnSetRNNDataDescriptor(struct data* d, int type, int layout, int steps, int batch, int width, const int* lengths, void* fill) {
  (void)fill;
  if (batch < 1 || batch > MOST || steps < 1 || width < 1 || layout < 0 || layout > 2) return BAD;
  for (int i = 0; i < batch; ++i)
    if (lengths[i] < 1 || lengths[i] > steps || (layout == 1 && i && lengths[i] > lengths[i - 1])) return BAD;
  *d = (struct data){type, layout, steps, batch, width, {0}};
  memcpy(d->lengths, lengths, batch * sizeof(int));
  return OK;
}

int cudnnSetTensorNdDescriptor(struct tensor* t, int type, int dims, const int* dim, const int* stride) {
  if (dims < 3 || dims > 4) return BAD;
  t->type = type, t->dims = dims;
  memcpy(t->dim, dim, dims * sizeof(int)), memcpy(t->stride, stride, dims * sizeof(int));
  return OK;
}

static size_t work_of(const struct data* x, int training) { return 16 + 8 * (size_t)x->steps * (training ? 2 : 1); }
static size_t reserve_of(const struct data* x) { return sizeof(struct kept) + 4 * (size_t)x->batch; }

int cudnnGetRNNTempSpaceSizes(void* h, struct rnn* r, int training, struct data* x, size_t* work, size_t* reserve) {
  if (h != &handle_made || training < 0 || training > 1 || x->width != r->input) return BAD;
  *work = work_of(x, training);
  if (training) *reserve = reserve_of(x);
  return OK;
}

int cudnnGetRNNWeightSpaceSize(void* h, struct rnn* r, size_t* size) {
  int64_t starts[5 * MOST];
  if (h != &handle_made || places(r) > MOST) return BAD;
  *size = starts_of(r, starts) * item(r->type);
  return OK;
}

int cudnnGetRNNWeightParams(void* h, struct rnn* r, int place, size_t size, char* space, int which, struct tensor* m, void** matrix,
                            struct tensor* b, void** vector) {
  int64_t starts[5 * MOST];
  const int n = gates(r), kind = which / n;
  if (h != &handle_made || places(r) > MOST || place < 0 || place >= places(r) || which < 0 || which > 2 * n || !space || !m || !b ||
      size != starts_of(r, starts) * item(r->type))
    return BAD;
  const int64_t* own = starts + 5 * place;
  if (kind == 2) return own[4] < 0 ? BAD : (*matrix = space + own[4] * item(r->type), *vector = 0, OK);
  const int64_t width = kind ? r->proj : columns(r, place), at = own[kind] + (which % n) * r->hidden * width;
  *matrix = space + at * item(r->type);
  *vector = own[2 + kind] < 0 ? 0 : space + (own[2 + kind] + (which % n) * r->hidden) * item(r->type);
  return OK;
}

/* Whether sequences and states fit the layers, and the lengths on the device are those on the host. */
static int fits(void* h, const struct rnn* r, const int32_t* lengths, const struct data* x, const struct data* y, const struct tensor* hd,
                const struct tensor* cd, const void* cx, size_t wsize, const void* w, size_t work, const void* space, int training) {
  int64_t starts[5 * MOST];
  if (h != &handle_made || !lengths || !x || !y || !hd || !w || !space) return 0;
  if (x->type != r->type || y->type != r->type || x->width != r->input || y->width != r->proj * (r->dir + 1)) return 0;
  if (x->layout != y->layout || x->steps != y->steps || x->batch != y->batch || memcmp(x->lengths, y->lengths, sizeof x->lengths)) return 0;
  if (x->layout != 1 || memcmp(lengths, x->lengths, x->batch * sizeof(int))) return 0;
  if ((r->mode == LSTM) != (cd != 0) || (cx && !cd)) return 0;
  for (int k = 0; k < 2; ++k) {
    const struct tensor* t = k ? cd : hd;
    if (!t) continue;
    const int width = k ? r->hidden : r->proj;
    if (t->type != r->type || t->dims != 3 || t->dim[0] != places(r) || t->dim[1] != x->batch || t->dim[2] != width ||
        t->stride[0] != x->batch * width || t->stride[1] != width || t->stride[2] != 1)
      return 0;
  }
  return wsize == starts_of(r, starts) * item(r->type) && work == work_of(x, training);
}

static int compute(const struct rnn* r, const struct data* x, struct call* c, void* space, size_t work) {
  int64_t starts[5 * MOST];
  starts_of(r, starts);
  memset(space, 0xAB, work);
  c->mode = r->mode, c->dirs = r->dir + 1, c->type = r->type, c->math = r->math, c->input = r->input, c->hidden = r->hidden;
  c->proj = r->proj, c->layers = r->layers, c->steps = x->steps, c->batch = x->batch, c->lengths = x->lengths, c->starts = starts;
  c->stream = current_stream;
  return rnn_compute ? rnn_compute(c) : OK;
}

int cudnnRNNForward(void* h, struct rnn* r, int training, const int32_t* lengths, struct data* xd, const void* x, struct data* yd, void* y,
                    struct tensor* hd, const void* hx, void* hy, struct tensor* cd, const void* cx, void* cy, size_t wsize, const void* w,
                    size_t work, void* space, size_t reserve, struct kept* kept) {
  if (!fits(h, r, lengths, xd, yd, hd, cd, cx, wsize, w, work, space, training) || !x || !y || (cy && !cd)) return BAD;
  if (training ? !kept || reserve != reserve_of(xd) : reserve != 0) return BAD;
  if (rnn_fails) return rnn_fails;
  if (training) memset(kept, 0xCD, reserve), *kept = (struct kept){MAGIC, NEW, ++tickets};
  struct call c = {.kind = 0, .training = training, .ticket = training ? kept->ticket : 0, .x = x, .hx = hx, .cx = cx, .weights = w, .y = y, .hy = hy, .cy = cy};
  return compute(r, xd, &c, space, work);
}

int cudnnRNNBackwardData_v8(void* h, struct rnn* r, const int32_t* lengths, struct data* yd, const void* y, const void* dy, struct data* xd,
                            void* dx, struct tensor* hd, const void* hx, const void* dhy, void* dhx, struct tensor* cd, const void* cx,
                            const void* dcy, void* dcx, size_t wsize, const void* w, size_t work, void* space, size_t reserve,
                            struct kept* kept) {
  if (!fits(h, r, lengths, xd, yd, hd, cd, cx, wsize, w, work, space, 1) || !y || !dy || !dx || ((dcy || dcx) && !cd)) return BAD;
  if (!kept || reserve != reserve_of(xd) || kept->magic != MAGIC || kept->state != NEW) return BAD;
  kept->state = PULLED;
  struct call c = {.kind = 1, .ticket = kept->ticket, .hx = hx, .cx = cx, .weights = w, .y = (void*)y, .dy = dy, .dhy = dhy, .dcy = dcy, .dx = dx, .dhx = dhx,
                   .dcx = dcx};
  return compute(r, xd, &c, space, work);
}

int cudnnRNNBackwardWeights_v8(void* h, struct rnn* r, int set, const int32_t* lengths, struct data* xd, const void* x, struct tensor* hd,
                               const void* hx, struct data* yd, const void* y, size_t wsize, void* dw, size_t work, void* space,
                               size_t reserve, struct kept* kept) {
  if (set || !x || !y || !dw || !kept || reserve != reserve_of(xd) || kept->magic != MAGIC || kept->state != PULLED) return BAD;
  int64_t starts[5 * MOST];
  if (h != &handle_made || !lengths || memcmp(lengths, xd->lengths, xd->batch * sizeof(int)) || yd->width != r->proj * (r->dir + 1) ||
      hd->dim[0] != places(r) || wsize != starts_of(r, starts) * item(r->type) || work != work_of(xd, 1) || !space)
    return BAD;
  struct call c = {.kind = 2, .ticket = kept->ticket, .x = x, .hx = hx, .y = (void*)y, .dweights = dw};
  return compute(r, xd, &c, space, work);
}
