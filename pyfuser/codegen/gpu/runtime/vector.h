#pragma once

// Neighbouring elements, which are loaded and stored at once.
template <typename T, int lanes> struct alignas(lanes * sizeof(T)) pf_vector { T cell[lanes]; };

template <int lanes, typename T>
static PF_DEVICE inline pf_vector<T, lanes> pf_load(const T* first) {
    typedef typename pf_words<lanes * sizeof(T)>::type words;
    const words all = pf_get((const words*)first);
    pf_vector<T, lanes> result;
    pf_copy(&result, &all, sizeof(words));
    return result;
}

// Of memory that the kernel does not write.
template <int lanes, typename T>
static PF_DEVICE inline pf_vector<T, lanes> pf_load_constant(const T* first) {
    typedef typename pf_words<lanes * sizeof(T)>::type words;
    const words all = pf_get_constant((const words*)first);
    pf_vector<T, lanes> result;
    pf_copy(&result, &all, sizeof(words));
    return result;
}

template <int lanes, typename T>
static PF_DEVICE inline void pf_store(T* first, pf_vector<T, lanes> values) {
    typedef typename pf_words<lanes * sizeof(T)>::type words;
    words all;
    pf_copy(&all, &values, sizeof(words));
    pf_put((words*)first, all);
}
