/* A small stand-in for the NVIDIA driver library, loaded as libnvidia-ml.so.1.

   Its cards come from the environment: STUB_GPUS holds one card per semicolon,
   "uuid,bus,name,watts,factor,counter,handle,mig": true power, what the power sensor says of it,
   the return codes of the energy counter and of opening the card (0 is success), MIG mode.
   STUB_INIT is the return code of initialization. Its clock is set by the test.

   STUB_FAULTS holds one fault per semicolon, "kind,card,from,to,code", by the clock in seconds:
   `energy`, `power` and `processes` make that query return the code, `still` freezes the counter,
   `reset` sets it to 0 at `from`. STUB_STEP_S is the time between two moves of the counter,
   STUB_UNIT a factor on what it says. stub_set_processes() or STUB_PROCESS_IDS give the process ids on each card,
   "1 2;3"; while stub_set_hang(1) is in force neither initialization nor a counter comes back.
   Without a clock of the test's the time is the machine's. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SUCCESS 0
#define NOT_SUPPORTED 3
#define INVALID_ARGUMENT 2
#define INSUFFICIENT_SIZE 7
#define POWER_INSTANT 186
#define CARDS 8
#define PROCESSES 8

typedef struct {
    char uuid[64], bus[32], name[64];
    double watts, factor;
    int counter, handle, mig;
} Card;

typedef struct {
    char bus_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} PciInfo;

typedef struct {
    uint32_t field_id, scope_id;
    int64_t timestamp, latency_us;
    int value_type, result;
    union { double d; unsigned ui; unsigned long long ull; } value;
} FieldValue;

typedef struct {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
} Process;

static Card cards[CARDS];
static unsigned count;
static unsigned process_ids[CARDS][PROCESSES], process_count[CARDS];
static volatile int hanging, hung;
static double (*clock_s)(void);

void stub_set_clock(double (*clock)(void)) { clock_s = clock; }

void stub_set_hang(int hang) { hanging = hang; }

/* Whether a query hangs now. */
int stub_hangs(void) { return hung; }

void stub_set_processes(const char *text) {
    memset(process_count, 0, sizeof process_count);
    for (int card = 0; *text && card < CARDS; text++) {
        if (*text == ';') card++;
        else if (*text != ' ') {
            char *end;
            process_ids[card][process_count[card]++] = (unsigned)strtoul(text, &end, 10);
            text = end - 1;
        }
    }
}

static double now_s(void) {
    if (clock_s) return clock_s();
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + now.tv_nsec / 1e9;
}

/* Find a fault of a kind on a card that has begun; 1 while it lasts, 2 once it is over. */
static int fault(const char *kind, const Card *card, double *from, int *code) {
    const char *text = getenv("STUB_FAULTS");
    int found = 0;
    while (text && *text) {
        char its_kind[16];
        int its_card, its_code;
        double its_from, its_to;
        if (sscanf(text, "%15[^,],%d,%lf,%lf,%d", its_kind, &its_card, &its_from, &its_to,
                   &its_code) == 5
            && !strcmp(kind, its_kind) && its_card == card - cards && now_s() >= its_from
            && found != 1) {
            found = now_s() < its_to ? 1 : 2;
            if (from) *from = its_from;
            if (code) *code = its_code;
        }
        text = strchr(text, ';');
        if (text) text++;
    }
    return found;
}

static int error_of(const char *kind, const Card *card) {
    int code = SUCCESS;
    return fault(kind, card, NULL, &code) == 1 ? code : SUCCESS;
}

static void hang(void) {
    for (hung = hanging; hanging;) usleep(1000);
    hung = 0;
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    hang();
    if (getenv("STUB_PROCESS_IDS")) stub_set_processes(getenv("STUB_PROCESS_IDS"));
    const char *code = getenv("STUB_INIT");
    if (code && atoi(code)) return atoi(code);
    char *copy = strdup(getenv("STUB_GPUS")), *state = NULL;
    count = 0;
    for (char *entry = strtok_r(copy, ";", &state); entry; entry = strtok_r(NULL, ";", &state)) {
        Card *card = &cards[count++];
        sscanf(entry, "%63[^,],%31[^,],%63[^,],%lf,%lf,%d,%d,%d", card->uuid, card->bus, card->name,
               &card->watts, &card->factor, &card->counter, &card->handle, &card->mig);
    }
    free(copy);
    return SUCCESS;
}

int nvmlShutdown(void) { return SUCCESS; }

const char *nvmlErrorString(int code) { (void)code; return "stub error"; }

int nvmlSystemGetDriverVersion(char *version, unsigned size) {
    snprintf(version, size, "570.00");
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *result) { *result = count; return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Card **card) {
    if (index >= count) return INVALID_ARGUMENT;
    *card = &cards[index];
    return cards[index].handle;
}

int nvmlDeviceGetUUID(Card *card, char *uuid, unsigned size) {
    snprintf(uuid, size, "%s", card->uuid);
    return SUCCESS;
}

int nvmlDeviceGetName(Card *card, char *name, unsigned size) {
    snprintf(name, size, "%s", card->name);
    return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(Card *card, PciInfo *info) {
    memset(info, 0, sizeof *info);
    snprintf(info->bus_id, sizeof info->bus_id, "%s", card->bus);
    return SUCCESS;
}

int nvmlDeviceGetMigMode(Card *card, unsigned *current, unsigned *pending) {
    if (card->mig < 0) return NOT_SUPPORTED;
    *current = *pending = (unsigned)card->mig;
    return SUCCESS;
}

int nvmlDeviceGetTotalEnergyConsumption(Card *card, unsigned long long *millijoules) {
    hang();
    double at_s = now_s(), since_s = -86400.0; /* as if the driver had been loaded for a day */
    double from_s;
    if (fault("still", card, &from_s, NULL) == 1) at_s = from_s;
    if (fault("reset", card, &from_s, NULL)) since_s = from_s;
    const char *step = getenv("STUB_STEP_S"), *unit = getenv("STUB_UNIT");
    if (step) at_s = (long long)(at_s / atof(step) + 1e-6) * atof(step);
    double joules = (at_s - since_s) * card->watts * (unit ? atof(unit) : 1.0);
    *millijoules = (unsigned long long)(joules * 1000.0 + 0.5);
    int code = error_of("energy", card);
    return code ? code : card->counter;
}

static int list(const Card *card, unsigned *size, Process *processes) {
    unsigned own = process_count[card - cards];
    unsigned room = processes ? *size : 0;
    int code = error_of("processes", card);
    if (code) return code;
    *size = own;
    if (room < own) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < own; i++)
        processes[i] = (Process){.pid = process_ids[card - cards][i]};
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(Card *card, unsigned *size, Process *processes) {
    return getenv("STUB_OLD_DRIVER") ? NOT_SUPPORTED : list(card, size, processes);
}

int nvmlDeviceGetComputeRunningProcesses_v2(Card *card, unsigned *size, Process *processes) {
    return list(card, size, processes);
}

int nvmlDeviceGetFieldValues(Card *card, int fields, FieldValue *values) {
    for (int i = 0; i < fields; i++) {
        int known = values[i].field_id == POWER_INSTANT && !getenv("STUB_OLD_DRIVER");
        int code = error_of("power", card);
        values[i].result = code ? code : known ? SUCCESS : NOT_SUPPORTED;
        values[i].value.ui = (unsigned)(card->watts * card->factor * 1000.0 + 0.5);
    }
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(Card *card, unsigned *milliwatts) {
    *milliwatts = (unsigned)(card->watts * card->factor * 1000.0 + 0.5);
    int code = error_of("power", card);
    return code ? code : card->factor > 0 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetClockInfo(Card *card, int type, unsigned *mhz) {
    (void)card;
    *mhz = type == 1 ? 1980 : 2619;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(Card *card, int sensor, unsigned *celsius) {
    (void)card; (void)sensor;
    *celsius = 61;
    return SUCCESS;
}

int nvmlDeviceGetEnforcedPowerLimit(Card *card, unsigned *milliwatts) {
    (void)card;
    *milliwatts = 700000;
    return SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(Card *card, unsigned long long *reasons) {
    (void)card;
    *reasons = now_s() > 5.0 ? 0x4 : 0x0; /* software power cap */
    return SUCCESS;
}
