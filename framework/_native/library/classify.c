/* A photo through an image classifier, without Python.
 *
 *     cc classify.c -I. -L.. -lframework -Wl,-rpath,.. -o classify
 *     ./classify model.fwk photo.ppm labels.txt
 *
 * The model takes (1, 3, height, width) numbers of [0, 1] and gives one score for each class; labels.txt has a name
 * on each line. Photos are binary PPM files ("P6"), which every image program writes. The middle of the photo is cut out and
 * each pixel of the input is the nearest one there. Prints the best five classes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework.h"

static void fail(const char* what, const char* why) {
    fprintf(stderr, "classify: %s: %s\n", what, why);
    exit(1);
}

static unsigned char* read_ppm(const char* path, int* width, int* height) {
    FILE* file = fopen(path, "rb");
    int most;
    unsigned char* pixels;
    size_t size;
    if (!file) fail(path, "cannot be opened");
    if (fscanf(file, "P6 %d %d %d", width, height, &most) != 3 || most != 255 || *width < 1 || *height < 1 ||
        *width > 20000 || *height > 20000 || fgetc(file) == EOF)
        fail(path, "is not a binary PPM file of 8 bits");
    size = (size_t)*width * (size_t)*height * 3;
    pixels = malloc(size);
    if (!pixels || fread(pixels, 1, size, file) != size) fail(path, "ends early");
    fclose(file);
    return pixels;
}

/* The middle of a photo as planes of red, green and blue. */
static void to_planes(const unsigned char* photo, int width, int height, float* to, int rows, int cols) {
    int side = width < height ? width : height, left = (width - side) / 2, top = (height - side) / 2, c, i, j;
    for (c = 0; c < 3; ++c)
        for (i = 0; i < rows; ++i)
            for (j = 0; j < cols; ++j) {
                int y = top + (int)((long)i * side / rows), x = left + (int)((long)j * side / cols);
                *to++ = (float)photo[3 * ((long)y * width + x) + c] / 255.0f;
            }
}

int main(int argc, char** argv) {
    framework_model* model = NULL;
    framework_request* request = NULL;
    framework_message why;
    framework_port port;
    fw_view input, output;
    int width, height, best, i;
    int64_t count, size[4], steps[4];
    unsigned char* photo;
    float *planes, *scores;
    char* names;
    FILE* labels;

    if (argc != 4) fail("usage", "classify model.fwk photo.ppm labels.txt");
    if (framework_model_load(argv[1], &model, &why) != FW_OK) fail(argv[1], why.text);
    if (framework_model_input(model, 0, &port) != FW_OK || port.type != FW_FLOAT32 || port.ndim != 4 || port.shape[1] != 3 ||
        port.shape[2] < 1 || port.shape[3] < 1)
        fail(argv[1], "is not a model of photos of one size");
    size[0] = 1, size[1] = 3, size[2] = port.shape[2], size[3] = port.shape[3];
    steps[3] = sizeof(float), steps[2] = steps[3] * size[3], steps[1] = steps[2] * size[2], steps[0] = steps[1] * 3;
    photo = read_ppm(argv[2], &width, &height);
    planes = malloc((size_t)steps[0]);
    if (!planes) fail(argv[2], "out of memory");
    to_planes(photo, width, height, planes, (int)size[2], (int)size[3]);
    input.data = planes, input.type = FW_FLOAT32, input.ndim = 4, input.shape = size, input.strides = steps;
    if (framework_request_new(model, &request) != FW_OK) fail(argv[1], "out of memory");
    if (framework_model_run(request, &input, 1, &output, 1, &why) != FW_OK) fail(argv[1], why.text);
    if (output.type != FW_FLOAT32 || output.ndim != 2) fail(argv[1], "does not give one score for each class");

    count = output.shape[1];
    scores = malloc((size_t)count * sizeof(float));
    names = calloc((size_t)count, 64);
    labels = fopen(argv[3], "r");
    if (!scores || !names || !labels) fail(argv[3], "cannot be opened");
    for (i = 0; i < count; ++i) {
        scores[i] = *(const float*)((const char*)output.data + i * output.strides[1]);
        if (!fgets(names + 64 * i, 64, labels)) fail(argv[3], "has too few names");
        names[64 * i + (int)strcspn(names + 64 * i, "\n")] = 0;
    }
    for (best = 0; best < 5 && best < count; ++best) {
        int top = -1;
        for (i = 0; i < count; ++i)
            if (names[64 * i] && (top < 0 || scores[i] > scores[top])) top = i;
        if (top < 0) break;
        printf("%-20s %.6f %a\n", names + 64 * top, scores[top], scores[top]);
        names[64 * top] = 0;
    }
    fclose(labels);
    free(photo), free(planes), free(scores), free(names);
    framework_request_free(request);
    framework_model_free(model);
    return 0;
}
