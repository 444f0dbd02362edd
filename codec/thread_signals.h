/* Which signals a thread takes, and the stack on which its handlers run. */
#ifndef CODEC_THREAD_SIGNALS_H
#define CODEC_THREAD_SIGNALS_H

/* Handlers run on a stack of their own, also when the thread's has overflowed. Does nothing where
 * the calling thread has one (from a sanitizer). */
void thread_signals_use_stack(void);
/* The first call of every thread but the main one: that, and signals sent to the process are left
 * to the main thread. Its own faults stay its own. */
void thread_signals_begin(void);

#endif
