/*
 * The list of all verbs, in the order of --help. A file with verbs exports one table; this is the
 * only place that knows them all.
 */
#include "ui/cli/verbs.h"

const struct cli_verb *const cli_verbs[] = {
    verbs_console, verbs_install, verbs_push,  verbs_work,     verbs_list, verbs_tail,  verbs_check,
    verbs_doctor,  verbs_metrics, verbs_job,   verbs_act,      verbs_edit, verbs_queue, verbs_cron,
    verbs_record,  verbs_adapter, verbs_words, verbs_complete, verbs_demo, NULL,
};
