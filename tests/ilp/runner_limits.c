/* SPDX-License-Identifier: MIT */
/* Solves that end early or badly: the start is kept, and the process lives as before. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include <glpk.h>

#include "programs.h"

/* What a solve that may have ended early must still be. `optimum` was found without limits. */
static void assert_sound(const hard_program *hard, const eplb_ilp_solution *solution,
                         double optimum)
{
    assert_true(solution->has_values);
    assert_true(solution->objective <= hard->dealt);
    assert_true(solution->objective >= optimum - 1e-9);
    assert_true(solution->bound <= optimum);
    assert_true(hard->values[HARD_COLUMNS - 1] == solution->objective);
    for (int32_t j = 0; j < HARD_COLUMNS - 1; j++) {
        assert_true(hard->values[j] == 0.0 || hard->values[j] == 1.0);
    }
    assert_true((solution->outcome == EPLB_ILP_FAILED) == (solution->reason[0] != '\0'));
}

static eplb_ilp_solution solve_with(const eplb_ilp_limits *limits)
{
    hard_program hard;
    hard_program_init(&hard, NULL);
    eplb_ilp_solution solution = solve_hard(&hard, limits);
    solution.values = NULL;
    eplb_ilp_model_free(&hard.model);
    return solution;
}

static double unlimited_optimum(void)
{
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    eplb_ilp_solution solution = solve_with(&limits);
    assert_int_equal(solution.outcome, EPLB_ILP_OPTIMAL);
    return solution.objective;
}

static void budget_of_nodes_is_kept(void **state)
{
    (void)state;
    double optimum = unlimited_optimum();
    double bound = -INFINITY;
    const int64_t budgets[] = {0, 1, 2, 3, 10, 50, 200};
    for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
        hard_program hard;
        hard_program_init(&hard, NULL);
        eplb_ilp_limits limits;
        eplb_ilp_limits_init(&limits);
        limits.nodes = budgets[i];
        eplb_ilp_solution solution = solve_hard(&hard, &limits);
        assert_int_equal(solution.outcome, EPLB_ILP_LIMIT);
        assert_int_equal(solution.nodes, budgets[i]);
        assert_sound(&hard, &solution, optimum);
        assert_true(solution.bound >= bound); /* a longer search proves no less */
        assert_true(solution.bound > 0.9 * optimum);
        bound = solution.bound;
        eplb_ilp_model_free(&hard.model);
    }
}

static void budget_of_iterations_is_kept(void **state)
{
    (void)state;
    double optimum = unlimited_optimum();
    for (int64_t budget = 0; budget < 12; budget++) {
        hard_program hard;
        hard_program_init(&hard, NULL);
        eplb_ilp_limits limits;
        eplb_ilp_limits_init(&limits);
        limits.iterations = budget;
        eplb_ilp_solution solution = solve_hard(&hard, &limits);
        assert_int_equal(solution.outcome, EPLB_ILP_LIMIT);
        assert_int_equal(solution.iterations, budget);
        assert_int_equal(solution.nodes, 0);
        assert_sound(&hard, &solution, optimum);
        assert_true(solution.objective == hard.dealt);
        eplb_ilp_model_free(&hard.model);
    }
}

#define LARGE_ITEMS 120
#define LARGE_BINS 20
#define LARGE_COLUMNS (LARGE_ITEMS * LARGE_BINS + 1)

/* GLPK needs several MiB for this program; outcome and reason are returned. */
static eplb_ilp_solution solve_large(int64_t memory_bytes)
{
    double weight[LARGE_ITEMS];
    uint64_t random = 5;
    for (int32_t i = 0; i < LARGE_ITEMS; i++) {
        weight[i] = 1.0 + (double)draw(&random, 100);
    }
    eplb_ilp_model model = new_model(NULL);
    add_packing(&model, weight, LARGE_ITEMS, LARGE_BINS);
    static double values[LARGE_COLUMNS];
    static double start[LARGE_COLUMNS];
    double dealt = deal_items(weight, LARGE_ITEMS, LARGE_BINS, values);
    memcpy(start, values, sizeof(start));
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    limits.memory_bytes = memory_bytes;
    limits.nodes = 0;
    eplb_ilp_solution solution = {.values = values, .has_values = true};
    assert_ok(eplb_ilp_solve(&model, &limits, &solution, NULL), NULL);
    assert_true(solution.has_values && solution.objective == dealt);
    assert_memory_equal(values, start, sizeof(start));
    eplb_ilp_model_free(&model);
    solution.values = NULL;
    return solution;
}

static void memory_limit_fails_with_its_reason_and_keeps_the_start(void **state)
{
    (void)state;
    const int64_t limits[] = {0, 1, (1 << 20) - 1, 1 << 20, (2 << 20) - 1};
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        eplb_ilp_solution solution = solve_large(limits[i]);
        assert_int_equal(solution.outcome, EPLB_ILP_FAILED);
        assert_contains(solution.reason, "memory");
        assert_true(isinf(solution.bound) && solution.bound < 0.0);
    }
    eplb_ilp_solution solution = solve_large((int64_t)64 << 20);
    assert_int_equal(solution.outcome, EPLB_ILP_LIMIT);
    assert_string_equal(solution.reason, "");
    assert_true(solution.bound > 0.0);
}

typedef struct questions {
    pthread_t caller;
    pthread_mutex_t mutex;
    pthread_cond_t asked;
    int64_t count;
    int64_t yes_at; /* from 1; 0: never */
    bool is_cancelled;
} questions;

static int answer(void *context)
{
    questions *self = context;
    assert_true(pthread_equal(pthread_self(), self->caller));
    (void)pthread_mutex_lock(&self->mutex);
    self->count++;
    bool yes = self->count == self->yes_at || self->is_cancelled;
    (void)pthread_cond_signal(&self->asked);
    (void)pthread_mutex_unlock(&self->mutex);
    return yes ? 1 : 0;
}

static eplb_ilp_limits limits_with(questions *asked, int64_t yes_at)
{
    *asked = (questions){.caller = pthread_self(),
                         .mutex = PTHREAD_MUTEX_INITIALIZER,
                         .asked = PTHREAD_COND_INITIALIZER,
                         .yes_at = yes_at};
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    limits.stop = answer;
    limits.stop_context = asked;
    return limits;
}

static void stop_is_obeyed_whenever_it_says_so(void **state)
{
    (void)state;
    double optimum = unlimited_optimum();
    questions asked;
    eplb_ilp_limits limits = limits_with(&asked, 0);
    assert_int_equal(solve_with(&limits).outcome, EPLB_ILP_OPTIMAL);
    int64_t all = asked.count;
    assert_true(all > 10);
    uint64_t random = 3;
    for (int i = 0; i < 25; i++) {
        int64_t yes_at = i < 3 ? i + 1 : 1 + (int64_t)draw(&random, (uint32_t)all);
        hard_program hard;
        hard_program_init(&hard, NULL);
        limits = limits_with(&asked, yes_at);
        eplb_ilp_solution solution = solve_hard(&hard, &limits);
        assert_int_equal(solution.outcome, EPLB_ILP_STOPPED);
        assert_int_equal(asked.count, yes_at); /* once is enough */
        assert_sound(&hard, &solution, optimum);
        eplb_ilp_model_free(&hard.model);
    }
}

/* Says stop once the third question has been asked. */
static void *cancel(void *context)
{
    questions *self = context;
    (void)pthread_mutex_lock(&self->mutex);
    while (self->count < 3) {
        (void)pthread_cond_wait(&self->asked, &self->mutex);
    }
    self->is_cancelled = true;
    (void)pthread_mutex_unlock(&self->mutex);
    return NULL;
}

static void another_thread_may_cancel(void **state)
{
    (void)state;
    double optimum = unlimited_optimum();
    hard_program hard;
    hard_program_init(&hard, NULL);
    questions asked;
    eplb_ilp_limits limits = limits_with(&asked, 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel, &asked), 0);
    eplb_ilp_solution solution = solve_hard(&hard, &limits);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(solution.outcome == EPLB_ILP_STOPPED || solution.outcome == EPLB_ILP_OPTIMAL);
    assert_sound(&hard, &solution, optimum);
    eplb_ilp_model_free(&hard.model);
}

typedef struct one_of_many {
    hard_program hard;
    eplb_ilp_solution solution;
    eplb_status status;
} one_of_many;

/* Assertions are for the main thread only. */
static void *solve_one(void *context)
{
    one_of_many *one = context;
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    one->solution = (eplb_ilp_solution){.values = one->hard.values, .has_values = true};
    one->status = eplb_ilp_solve(&one->hard.model, &limits, &one->solution, NULL);
    return NULL;
}

#define AT_ONCE 4

static void solves_at_once_end_as_alone(void **state)
{
    (void)state;
    static one_of_many alone;
    static one_of_many many[AT_ONCE];
    hard_program_init(&alone.hard, NULL);
    (void)solve_one(&alone);
    pthread_t threads[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        hard_program_init(&many[i].hard, NULL);
        assert_int_equal(pthread_create(&threads[i], NULL, solve_one, &many[i]), 0);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(many[i].status, EPLB_OK);
        assert_int_equal(many[i].solution.outcome, EPLB_ILP_OPTIMAL);
        assert_int_equal(many[i].solution.nodes, alone.solution.nodes);
        assert_int_equal(many[i].solution.iterations, alone.solution.iterations);
        assert_true(many[i].solution.bound == alone.solution.bound);
        assert_memory_equal(many[i].hard.values, alone.hard.values, sizeof(alone.hard.values));
        eplb_ilp_model_free(&many[i].hard.model);
    }
    eplb_ilp_model_free(&alone.hard.model);
}

static int count_lines(void *info, const char *text)
{
    (void)text;
    ++*(int *)info;
    return 1;
}

static void note_error(void *info)
{
    longjmp(*(jmp_buf *)info, 1);
}

static void solve_hosts_problem(glp_prob *problem)
{
    glp_smcp settings;
    glp_init_smcp(&settings);
    assert_int_equal(glp_simplex(problem, &settings), 0);
    assert_int_equal(glp_get_status(problem), GLP_OPT);
    assert_true(glp_get_obj_val(problem) == 3.0);
}

/* The host has a problem and hooks of its own before, while and after others are solved. */
static void hosts_own_glpk_is_not_touched(void **state)
{
    (void)state;
    int lines = 0;
    static jmp_buf escape;
    glp_term_hook(count_lines, &lines);
    glp_error_hook(note_error, &escape);
    glp_prob *problem = glp_create_prob();
    glp_add_cols(problem, 1);
    glp_set_col_bnds(problem, 1, GLP_DB, 3.0, 8.0);
    glp_set_obj_coef(problem, 1, 1.0);
    glp_add_rows(problem, 1);
    glp_set_row_bnds(problem, 1, GLP_FR, 0.0, 0.0);
    solve_hosts_problem(problem);
    int before = lines;
    assert_true(before > 0);
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    assert_int_equal(solve_with(&limits).outcome, EPLB_ILP_OPTIMAL);
    assert_int_equal(solve_large(1 << 20).outcome, EPLB_ILP_FAILED);
    assert_int_equal(lines, before);
    solve_hosts_problem(problem);
    assert_true(lines > before);
    if (setjmp(escape) == 0) {
        glp_set_col_bnds(problem, 2, GLP_FR, 0.0, 0.0);
        fail_msg("%s", "a column that does not exist was taken");
    }
    assert_int_equal(glp_free_env(), 0);
}

static eplb_status solve_with_hooks(const eplb_hooks *hooks, void *context)
{
    (void)context;
    hard_program hard;
    hard_program_init(&hard, hooks);
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    limits.nodes = 1;
    double duals[HARD_ROWS];
    eplb_ilp_solution solution = {.values = hard.values, .has_values = true, .duals = duals};
    eplb_error error;
    eplb_status status = eplb_ilp_solve(&hard.model, &limits, &solution, &error);
    if (status != EPLB_OK) {
        assert_int_equal(error.status, status);
        assert_true(hard.values[HARD_COLUMNS - 1] == hard.dealt);
    }
    eplb_ilp_model_free(&hard.model);
    return status;
}

static void each_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    test_each_failing_allocation(solve_with_hooks, NULL);
}

/* What a program prints while it runs goes to a file; the size of that is returned. */
static long output_of(void (*program)(void **state))
{
    FILE *file = tmpfile();
    assert_non_null(file);
    int saved[2];
    (void)fflush(NULL);
    for (int i = 0; i < 2; i++) {
        saved[i] = dup(i + 1);
        assert_true(saved[i] >= 0 && dup2(fileno(file), i + 1) == i + 1);
    }
    program(NULL);
    (void)fflush(NULL);
    for (int i = 0; i < 2; i++) {
        (void)dup2(saved[i], i + 1);
        (void)close(saved[i]);
    }
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    (void)fclose(file);
    return size;
}

static void print_a_word(void **state)
{
    (void)state;
    printf("word");
}

static void nothing_is_printed(void **state)
{
    (void)state;
    assert_int_equal(output_of(print_a_word), 4);
    assert_int_equal(output_of(budget_of_nodes_is_kept), 0);
    assert_int_equal(output_of(memory_limit_fails_with_its_reason_and_keeps_the_start), 0);
    assert_int_equal(output_of(stop_is_obeyed_whenever_it_says_so), 0);
}

/* How the library starts threads in this program. */
static struct {
    atomic_bool refuses;
    atomic_bool is_interruptible;
} starting;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *context), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *context), void *context);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *context), void *context)
{
    if (starting.refuses) {
        return EAGAIN;
    }
    sigset_t mask;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    starting.is_interruptible = sigismember(&mask, SIGINT) == 0 || sigismember(&mask, SIGCHLD) == 0;
    return __real_pthread_create(thread, attributes, run, context);
}

static void without_a_thread_the_start_comes_back(void **state)
{
    (void)state;
    double optimum = unlimited_optimum();
    hard_program hard;
    hard_program_init(&hard, NULL);
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    starting.refuses = true;
    eplb_ilp_solution solution = solve_hard(&hard, &limits);
    starting.refuses = false;
    assert_int_equal(solution.outcome, EPLB_ILP_FAILED);
    assert_contains(solution.reason, "thread");
    assert_sound(&hard, &solution, optimum);
    assert_true(solution.objective == hard.dealt);
    eplb_ilp_model_free(&hard.model);
}

static void signals_stay_with_the_host(void **state)
{
    (void)state;
    sigset_t before;
    sigset_t after;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &before);
    starting.is_interruptible = true;
    (void)unlimited_optimum();
    assert_false(starting.is_interruptible);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
    assert_int_equal(sigismember(&after, SIGINT), 0);
}

TEST_MAIN(cmocka_unit_test(budget_of_nodes_is_kept), cmocka_unit_test(budget_of_iterations_is_kept),
          cmocka_unit_test(memory_limit_fails_with_its_reason_and_keeps_the_start),
          cmocka_unit_test(stop_is_obeyed_whenever_it_says_so),
          cmocka_unit_test(another_thread_may_cancel),
          cmocka_unit_test(solves_at_once_end_as_alone),
          cmocka_unit_test(hosts_own_glpk_is_not_touched),
          cmocka_unit_test(each_failing_allocation_is_reported_and_leaks_nothing),
          cmocka_unit_test(nothing_is_printed),
          cmocka_unit_test(without_a_thread_the_start_comes_back),
          cmocka_unit_test(signals_stay_with_the_host))
