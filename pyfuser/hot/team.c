/* One thread or all: which is faster where others want the processors, too, is measured in turns.

A kernel waits for all its threads. Where another program, or another library's threads that wait busily
(OpenBLAS's do for a while), have a processor, each launch waits until the scheduler gives it back: then
one thread is several times as fast. That comes and goes, as often as not while a process begins, so it is looked at again now and then. Only where
the bits are the same either way (`Prepared`'s `either`). */
#include "hot.h"

enum {
    BEGIN = 12,    /* runs before the first trial: memory and code are new, or bands are tried (launch.c) */
    ROUNDS = 4,    /* pairs of a trial */
    SOON = 64,     /* runs from a trial that one thread won to the next; then twice as many, up to ... */
    AGAIN = 1024,  /* runs from one trial to the next */
};

#define CLEARLY 0.8  /* of the time of all threads, that one has to take less than */
#define SURELY 1.25  /* times as long by one: the trial ends */
#define HOPELESS 2.0 /* times as long by all, where one was faster before: likewise */

/* How many threads the next run gets. */
int team_threads(const Team *team, int threads)
{
    if (threads < 2 || !team->either) return threads;
    long long turn = team->runs - team->begin;
    if (turn >= 0) return turn % 2 ? 1 : threads;
    return team->alone ? 1 : threads;
}

/* Whether the next run is to be timed. */
int team_tries(const Team *team, int threads) { return threads > 1 && team->either && team->runs >= team->begin; }

/* The mean of a trial's runs but the longest, which something else may have held up. */
static double usual(const double *sum, const double *most, int alone, int count)
{
    return count > 1 ? (sum[alone] - most[alone]) / (count - 1) : sum[alone];
}

/* Note that there was a run, and what it took if it was one of a trial. */
void team_note(Team *team, int threads, double seconds)
{
    if (!team_tries(team, threads)) {
        team->runs++;
        return;
    }
    int turn = (int)(team->runs++ - team->begin), alone = turn % 2;
    if (turn < 2) team->sum[alone] = team->most[alone] = 0.0;
    team->sum[alone] += seconds;
    if (seconds > team->most[alone]) team->most[alone] = seconds;
    if (!alone) return;
    int count = turn / 2 + 1;
    double one = usual(team->sum, team->most, 1, count), all = usual(team->sum, team->most, 0, count);
    int clear = count > 1 ? one > SURELY * all : team->alone && all > HOPELESS * one;
    if (count < ROUNDS && !clear) return;
    int was_alone = team->alone;
    team->alone = one < CLEARLY * all;
    team->rest = !team->alone ? AGAIN : !was_alone ? SOON : team->rest < AGAIN ? 2 * team->rest : AGAIN;
    team->begin = team->runs + team->rest;
}

void team_begin(Team *team, int either)
{
    *team = (Team){.either = either, .begin = BEGIN};
}
