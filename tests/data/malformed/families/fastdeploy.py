# SPDX-License-Identifier: MIT
"""FastDeploy's and lmdeploy's JSON."""

import json

from .base import compact, json_traps, replaced, structure


def fastdeploy(files):
    recorded = json.loads(files.read("format/fastdeploy_rearrange.json"))
    lists = ("tokens_per_expert_stats_list", "ep_rank_to_expert_id_list", "expert_id_to_ep_rank_array",
             "expert_in_rank_num_list")
    return {key: value[:1] if key in lists else value for key, value in recorded.items()}


def fastdeploy_counts(files):
    good = fastdeploy(files)
    key = "tokens_per_expert_stats_list"
    text = compact({key: [[5, 6, 7]]})
    files.put("fastdeploy_counts-good.json", compact(good))
    files.put("fastdeploy_counts-crlf.json", compact(good).replace(b",", b",\r\n"))
    files.cut("fastdeploy_counts", ".json", text, structure(text))
    json_traps(files, "fastdeploy_counts", ".json", text, b",6,")
    files.put("fastdeploy_counts-key_missing.json", compact({k: v for k, v in good.items() if k != key}))
    files.put("fastdeploy_counts-shape.json", compact({key: [[5, 6, 7], [5, 6]]}))
    files.put("fastdeploy_counts-key_twice.json", replaced(text, b"{", b'{"%s":[[1]],' % key.encode()))


def fastdeploy_maps(files):
    good = fastdeploy(files)
    files.put("fastdeploy_map-good.json", compact(good))
    text = compact(good)
    files.cut("fastdeploy_map", ".json", text, structure(text)[::9])
    slots = good["ep_rank_to_expert_id_list"][0]
    places = good["expert_id_to_ep_rank_array"][0]
    counts = good["expert_in_rank_num_list"][0]
    changes = {
        "slots_missing": {"ep_rank_to_expert_id_list": None},
        "slots_fewer": {"ep_rank_to_expert_id_list": [slots[:-1]]},
        "slots_empty": {"ep_rank_to_expert_id_list": []},
        "slots_word": {"ep_rank_to_expert_id_list": [["a"] + slots[1:]]},
        "slots_far": {"ep_rank_to_expert_id_list": [[4096] + slots[1:]]},
        "slots_negative": {"ep_rank_to_expert_id_list": [[-2] + slots[1:]]},
        "slots_fraction": {"ep_rank_to_expert_id_list": [[0.5] + slots[1:]]},
        "slots_2_60": {"ep_rank_to_expert_id_list": [[2**60] + slots[1:]]},
        "places_fewer": {"expert_id_to_ep_rank_array": [places[:-1]]},
        "places_contradict": {"expert_id_to_ep_rank_array": [[places[1], places[0]] + places[2:]]},
        "places_far": {"expert_id_to_ep_rank_array": [[[99] + places[0][1:]] + places[1:]]},
        "counts_contradict": {"expert_in_rank_num_list": [[counts[0] + 1] + counts[1:]]},
        "counts_none": {"expert_in_rank_num_list": [[0] + counts[1:]]},
    }
    for name, values in changes.items():
        changed = {k: v for k, v in {**good, **values}.items() if v is not None}
        files.put(f"fastdeploy_map-{name}.json", compact(changed))


def lmdeploy(files):
    good = compact([row[:2] for row in json.loads(files.read("format/lmdeploy_statistic.json"))[:2]])
    files.put("lmdeploy-good.json", good)
    files.put("lmdeploy-crlf.json", good.replace(b",", b",\r\n"))
    files.cut("lmdeploy", ".json", good, structure(good))
    json_traps(files, "lmdeploy", ".json", compact([[5, 6, 7], [1, 2, 3]]), b",6,")
    files.put("lmdeploy-shape.json", compact([[5, 6], [5]]))
    files.put("lmdeploy-depth_1.json", compact([5, 6]))
    files.put("lmdeploy-object.json", compact({"a": [[5, 6]]}))
    files.put("lmdeploy-empty.json", b"[]")
