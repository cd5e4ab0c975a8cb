/* A stand-in for libcudart.so.12, so that the real Triton sees the container's simulated GPUs.
 *
 * With it KIND_GPU does what it does in production: one instance for each visible GPU. "Device"
 * memory is the machine's own; nothing computes, and no memory is booked on the simulated GPUs
 * (the engines' processes do that). Functions are those that Triton 2.51 imports.
 */
#include <glob.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID = 1, NO_DEVICE = 100, NOT_SUPPORTED = 801 };
typedef void (*host_function)(void *);

/* Offsets in the 1032 bytes of CUDA 12's struct cudaDeviceProp. */
enum { PROPERTIES = 1032, TOTAL_MEMORY = 288, MAJOR = 360, MINOR = 364, PROCESSORS = 388 };

static __thread int current;

static int gpu_count(void) {
  glob_t found;
  int count = glob("/run/simgpu/GPU-*", 0, NULL, &found) ? 0 : (int)found.gl_pathc;
  globfree(&found);
  return count;
}

int cudaGetDeviceCount(int *count) {
  *count = gpu_count();
  return *count ? SUCCESS : NO_DEVICE;
}

int cudaSetDevice(int device) {
  if (!gpu_count()) return NO_DEVICE;
  current = device;
  return SUCCESS;
}

int cudaGetDevice(int *device) {
  *device = current;
  return gpu_count() ? SUCCESS : NO_DEVICE;
}

int cudaGetDeviceProperties_v2(char *properties, int device) {
  if (device >= gpu_count()) return INVALID;
  memset(properties, 0, PROPERTIES);
  strcpy(properties, "NVIDIA L4");
  *(size_t *)(properties + TOTAL_MEMORY) = (size_t)22565 << 20;
  *(int *)(properties + MAJOR) = 8;
  *(int *)(properties + MINOR) = 9;
  *(int *)(properties + PROCESSORS) = 58;
  return SUCCESS;
}

int cudaDeviceGetPCIBusId(char *id, int size, int device) {
  snprintf(id, (size_t)size, "0000:%02X:00.0", 0x17 + 0x22 * device);
  return SUCCESS;
}

int cudaMemGetInfo(size_t *available, size_t *total) {
  *available = *total = (size_t)22565 << 20;
  return SUCCESS;
}

static int allocate(void **pointer, size_t size) {
  if (!gpu_count()) return NO_DEVICE;
  *pointer = malloc(size);
  return *pointer ? SUCCESS : 2;
}

int cudaMalloc(void **pointer, size_t size) { return allocate(pointer, size); }
int cudaMallocManaged(void **pointer, size_t size, unsigned flags) {
  (void)flags;
  return allocate(pointer, size);
}
int cudaHostAlloc(void **pointer, size_t size, unsigned flags) {
  (void)flags;
  return allocate(pointer, size);
}
int cudaFree(void *pointer) { free(pointer); return SUCCESS; }
int cudaFreeHost(void *pointer) { free(pointer); return SUCCESS; }

int cudaMemcpy(void *to, const void *from, size_t size, int kind) {
  (void)kind;
  memmove(to, from, size);
  return SUCCESS;
}
int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) {
  (void)stream;
  return cudaMemcpy(to, from, size, kind);
}
int cudaMemcpyPeer(void *to, int a, const void *from, int b, size_t size) {
  (void)a, (void)b;
  return cudaMemcpy(to, from, size, 0);
}
int cudaMemcpyPeerAsync(void *to, int a, const void *from, int b, size_t size, void *stream) {
  (void)stream;
  return cudaMemcpyPeer(to, a, from, b, size);
}
int cudaMemset(void *to, int value, size_t size) { memset(to, value, size); return SUCCESS; }
int cudaMemPrefetchAsync(const void *p, size_t size, int device, void *stream) {
  (void)p, (void)size, (void)device, (void)stream;
  return SUCCESS;
}

/* Without NVLink no peer access is the rule. */
int cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  (void)device, (void)peer;
  *can = 0;
  return SUCCESS;
}
int cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  (void)peer, (void)flags;
  return NOT_SUPPORTED;
}

static int a_stream;
static int make_stream(void **stream) {
  *stream = &a_stream;
  return gpu_count() ? SUCCESS : NO_DEVICE;
}
int cudaStreamCreate(void **stream) { return make_stream(stream); }
int cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
  (void)flags, (void)priority;
  return make_stream(stream);
}
int cudaStreamDestroy(void *stream) { (void)stream; return SUCCESS; }
int cudaStreamSynchronize(void *stream) { (void)stream; return SUCCESS; }
int cudaStreamGetFlags(void *stream, unsigned *flags) {
  (void)stream;
  *flags = 0;
  return SUCCESS;
}
int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = *greatest = 0;
  return SUCCESS;
}
int cudaEventRecord(void *event, void *stream) { (void)event, (void)stream; return SUCCESS; }
int cudaEventSynchronize(void *event) { (void)event; return SUCCESS; }
int cudaLaunchHostFunc(void *stream, host_function function, void *data) {
  (void)stream;
  function(data);
  return SUCCESS;
}

int cudaLaunchKernel(void) { return NOT_SUPPORTED; }
int cudaIpcGetMemHandle(void) { return NOT_SUPPORTED; }
int cudaIpcOpenMemHandle(void) { return NOT_SUPPORTED; }
int cudaIpcCloseMemHandle(void) { return NOT_SUPPORTED; }
int cudaGetDriverEntryPoint(const char *symbol, void **function) {
  (void)symbol;
  *function = NULL;
  return NOT_SUPPORTED;
}

int cudaGetLastError(void) { return SUCCESS; }
const char *cudaGetErrorString(int error) {
  switch (error) {
    case SUCCESS: return "no error";
    case INVALID: return "invalid argument";
    case 2: return "out of memory";
    case NO_DEVICE: return "no CUDA-capable device is detected";
    default: return "operation not supported";
  }
}

/* Called by constructors of libraries that hold device code; there is none to register. */
void **__cudaRegisterFatBinary(void *binary) { (void)binary; static void *handle; return &handle; }
void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
void __cudaRegisterFunction(void) {}
void __cudaRegisterVar(void) {}
int __cudaPushCallConfiguration(void) { return NOT_SUPPORTED; }
int __cudaPopCallConfiguration(void) { return NOT_SUPPORTED; }
