/* A small stand-in for the NVIDIA driver library, loaded as libnvidia-ml.so.1.

   Its cards come from the environment: STUB_GPUS holds one card per semicolon,
   "uuid,bus,name,watts,factor,counter,handle,mig": true power, what the power sensor says of it,
   the return codes of the energy counter and of opening the card (0 is success), MIG mode.
   STUB_INIT is the return code of initialization. Its clock is set by the test. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUCCESS 0
#define NOT_SUPPORTED 3
#define INVALID_ARGUMENT 2
#define POWER_INSTANT 186

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

static Card cards[8];
static unsigned count;
static double (*clock_s)(void);

void stub_set_clock(double (*clock)(void)) { clock_s = clock; }

static double now_s(void) { return clock_s ? clock_s() : 0.0; }

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
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
    /* As if the driver had been loaded for a day. */
    *millijoules = (unsigned long long)((86400.0 + now_s()) * card->watts * 1000.0 + 0.5);
    return card->counter;
}

int nvmlDeviceGetFieldValues(Card *card, int fields, FieldValue *values) {
    for (int i = 0; i < fields; i++) {
        int known = values[i].field_id == POWER_INSTANT && !getenv("STUB_OLD_DRIVER");
        values[i].result = known ? SUCCESS : NOT_SUPPORTED;
        values[i].value.ui = (unsigned)(card->watts * card->factor * 1000.0 + 0.5);
    }
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(Card *card, unsigned *milliwatts) {
    *milliwatts = (unsigned)(card->watts * card->factor * 1000.0 + 0.5);
    return card->factor > 0 ? SUCCESS : NOT_SUPPORTED;
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
