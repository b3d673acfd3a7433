// Subtrees small enough to be left to whichever thread is free.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

struct SubtreeTasks {
    static constexpr int64_t MOST = 1024, LEAST_ROWS = 64;
    const GrowJob &job;
    const int64_t slot_size; // numbers of a node, by class
    Node *nodes;             // [MOST]
    int64_t *stats;          // [MOST][slot_size]
    int64_t n = 0, next = 0;

    void carve(Carver &carver) {
        const int64_t most = job.n_threads > 1 ? MOST : 0;
        nodes = carver.take<Node>(most);
        stats = carver.take<int64_t>(most * slot_size);
    }

    // Leave the subtree below a node, if it is one to be left.
    bool leave(const Node &node, const int64_t *own_stats) {
        const bool small = node.n * job.n_columns < SHARED_CELLS && node.n >= LEAST_ROWS;
        if (!small || node.n == job.n_root_rows || n == MOST) return false;
        for (int64_t i = 0; i < slot_size; ++i) stats[n * slot_size + i] = own_stats[i];
        nodes[n++] = node;
        return true;
    }

    // work(node, stats) of one subtree after another, until none is left.
    template <typename Work> void take_all(const Work work) {
        for (;;) {
            const int64_t i = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
            if (i >= n) return;
            work(nodes[i], stats + i * slot_size);
        }
    }
};
