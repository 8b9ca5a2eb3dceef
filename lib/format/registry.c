/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "format/format.h"

#define ADDRESS_OF_FORMAT(name) &eplb_format_##name,
static const eplb_format *const formats[] = {EPLB_FORMATS(ADDRESS_OF_FORMAT)};

const eplb_format *eplb_format_at(size_t index)
{
    return index < sizeof(formats) / sizeof(formats[0]) ? formats[index] : NULL;
}

const eplb_format *eplb_format_find(const char *name)
{
    const eplb_format *format;
    for (size_t i = 0; name != NULL && (format = eplb_format_at(i)) != NULL; i++) {
        if (strcmp(format->name, name) == 0) {
            return format;
        }
    }
    return NULL;
}

const char *eplb_format_name(const eplb_format *format)
{
    return format->name;
}

const char *eplb_format_description(const eplb_format *format)
{
    return format->description;
}

uint32_t eplb_format_flags(const eplb_format *format)
{
    return format->flags;
}

/* Formats need not fill in what they have nothing to say about. */
static const char *text_or_nothing(const char *text)
{
    return text != NULL ? text : "";
}

const char *eplb_format_engine(const eplb_format *format)
{
    return text_or_nothing(format->engine);
}

const char *eplb_format_recognised_by(const eplb_format *format)
{
    return text_or_nothing(format->recognised);
}

int32_t eplb_format_draft_layers(const eplb_format *format)
{
    return format->placement.draft_layers;
}

const char *eplb_format_change(const eplb_format *format)
{
    return text_or_nothing(format->change);
}
