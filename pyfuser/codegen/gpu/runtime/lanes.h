#pragma once

#define pf_lane() (pf_thread(x) % PF_LANES)
#define pf_group() (pf_thread(x) / PF_LANES)

// The first lane's value, for each lane of a group.
template <typename T> static PF_DEVICE inline T pf_lanes_first(T value) {
    int word[(sizeof(T) + 3) / 4] = {};
    pf_copy(word, &value, sizeof(T));
    for (int k = 0; k < (int)(sizeof(word) / sizeof(int)); ++k) {
        word[k] = pf_lane_word_first(word[k]);
    }
    pf_copy(&value, word, sizeof(T));
    return value;
}

template <typename T> static PF_DEVICE inline T pf_from_above(T value, int lanes) {
    int word[(sizeof(T) + 3) / 4] = {};
    pf_copy(word, &value, sizeof(T));
    for (int k = 0; k < (int)(sizeof(word) / sizeof(int)); ++k) {
        word[k] = pf_lane_word_down(word[k], lanes);
    }
    pf_copy(&value, word, sizeof(T));
    return value;
}

// All values of a group of lanes joined in halves, for each of them.
template <int lanes, typename F, typename T> static PF_DEVICE inline T pf_lanes_total(T value) {
    for (int half = lanes / 2; half; half /= 2) {
        value = F::join(value, pf_from_above(value, half));
    }
    return pf_lanes_first(value);
}
