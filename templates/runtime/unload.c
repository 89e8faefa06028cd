/* unload.c: frees the memory of the run time when its image is closed. Not at exit, when other threads may
 * still call and destructors of other images may read strings of gpustub.h. */
#include "internal.h"

#include <stdlib.h>

static void free_state(struct library_state *state)
{
    struct result *result = __atomic_exchange_n(&state->result, NULL, __ATOMIC_ACQ_REL);
    struct loaded_image *images =
        __atomic_exchange_n(&state->loaded_images, NULL, __ATOMIC_ACQ_REL);
    for (int i = 0; images && images[i].path; i++)
        free(images[i].path);
    free(images);
    while (result) {
        struct result *previous = result->previous;
        free(result->report);
        discard_result(result);
        result = previous;
    }
    free_hook_queue(state);
}

static void free_family(struct family *family)
{
    struct toolkit *toolkit = __atomic_exchange_n(&family->toolkit, NULL, __ATOMIC_ACQ_REL);
    if (toolkit)
        free((char *)toolkit->root);
    free(toolkit);
}

/* Frees all memory of the run time if the image is being closed. The libraries stay open. */
void free_if_closing(void)
{
    if (!is_closing())
        return;
    FOR_EACH_PART (part, NULL) {
        free_state(part->library->state);
        if (part->library->family)
            free_family(part->library->family);
        free(__atomic_exchange_n(&part->counts, NULL, __ATOMIC_ACQ_REL));
    }
    free_modules();
    free_failure_rules();
}
