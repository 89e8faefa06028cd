/* A library that records the stack: while it is being loaded, and in a call. */
#include <windows.h>

enum { MAX_FRAMES = 62 }; /* of CaptureStackBackTrace */

static void *at_start[MAX_FRAMES];
static int start_count;

BOOL WINAPI DllMain(HINSTANCE module, DWORD reason, LPVOID reserved)
{
    (void)module, (void)reserved;
    if (reason == DLL_PROCESS_ATTACH)
        start_count = CaptureStackBackTrace(0, MAX_FRAMES, at_start, NULL);
    return TRUE;
}

int trap_frames(void **frames, void **frames_at_start, int *count_at_start)
{
    memcpy(frames_at_start, at_start, sizeof at_start);
    *count_at_start = start_count;
    return CaptureStackBackTrace(0, MAX_FRAMES, frames, NULL);
}
