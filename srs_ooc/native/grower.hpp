// Growing a tree: from the root down, the smaller child of a node first, small subtrees by whichever thread is free.
// Included by trees.cpp only, inside its namespace: every clone has its own copy.

template <typename Code> struct Grower : TreeData<Code> {
    using Data = TreeData<Code>;
    using Data::criterion, Data::job, Data::numbers, Data::rows;
    static constexpr int64_t STACK = 66; // the larger child waits, so 2**65 rows would be needed
    NodeStats stats;
    RowPartition<Code> partition;
    SubtreeTasks tasks;              // of the first thread
    int64_t n_leaves = 0, depth = 0; // of this thread
    int64_t *importance;             // [n_columns] of this thread
    int64_t *stack_stats;            // [STACK + 1][n_classes][width]

    explicit Grower(GrowJob &job)
        : Data(job), stats{job, criterion, this->width, nullptr, nullptr, nullptr}, partition{*this, nullptr, nullptr, {}},
          tasks{job, stats.slot_size(), nullptr, nullptr} {}

    size_t nbytes() { return carve_shared(nullptr) + static_cast<size_t>(job.n_threads) * carve_own(nullptr); }

    void grow() {
        char *base = static_cast<char *>(job.scratch);
        carve_own(base + carve_shared(base));
        importance = job.importance;
        this->fill_own();
        this->fill_shared();
        grow_from(Node{0, job.n_root_rows, 0, job.tree_key, nullptr}, job.root_stats, job.n_threads > 1 ? &tasks : nullptr);
        Parts parts{*this, {}};
        if (tasks.n > 0) job.share(job.threads, &help, &parts);
        for (const Part &part : parts.part) {
            n_leaves += part.n_leaves;
            depth = part.depth > depth ? part.depth : depth;
            for (int64_t j = 0; part.importance && j < job.n_columns; ++j) importance[j] += part.importance[j];
        }
        job.n_leaves = n_leaves;
        job.depth = depth;
    }

  private:
    size_t carve_shared(char *base) {
        Carver carver{base};
        Data::carve_shared(carver);
        tasks.carve(carver);
        return carver.used;
    }

    size_t carve_own(char *base) {
        Carver carver{base};
        importance = carver.take<int64_t>(job.n_threads > 1 ? job.n_columns : 0);
        stack_stats = carver.take<int64_t>(stats.slot_size() * (STACK + 1));
        stats.carve(carver);
        partition.carve(carver);
        Data::carve_own(carver);
        return carver.used;
    }

    // ---- threads -------------------------------------------------------------------------------

    // What a thread grew, kept until all have ended.
    struct Part {
        int64_t *importance = nullptr, n_leaves = 0, depth = 0;
    };
    struct Parts {
        Grower &first;
        Part part[MAX_THREADS];
    };

    static void help(void *context, int number) {
        Parts &parts = *static_cast<Parts *>(context);
        if (number == 0) return parts.first.take_tasks(parts.first.tasks);
        Grower own(parts.first.job);
        own.join(parts.first, number);
        own.take_tasks(parts.first.tasks);
        parts.part[number] = Part{own.importance, own.n_leaves, own.depth};
    }

    void join(const Grower &first, int number) {
        char *base = static_cast<char *>(job.scratch);
        const size_t shared = carve_shared(base), own = carve_own(nullptr);
        carve_own(base + shared + static_cast<size_t>(number) * own);
        Data::join(first, number);
        for (int64_t j = 0; j < job.n_columns; ++j) importance[j] = 0;
        this->fill_own();
    }

    void take_tasks(SubtreeTasks &left) {
        left.take_all([this](const Node &node, const int64_t *own) { grow_from(node, own, nullptr); });
    }

    // ---- nodes ---------------------------------------------------------------------------------

    // Grow the tree below a node; subtrees may be left `for_later`.
    void grow_from(const Node &root, const int64_t *root_stats, SubtreeTasks *for_later) {
        const TreeRecorder<Code> recorder{job};
        Node stack[STACK];
        stack[0] = root;
        const int64_t slot_size = stats.slot_size();
        for (int64_t i = 0; i < slot_size; ++i) stack_stats[i] = root_stats[i];
        for (int64_t top = 0; top >= 0;) {
            const Node node = stack[top];
            int64_t *slot = stack_stats + top * slot_size, *next = slot + slot_size;
            if (for_later && for_later->leave(node, slot)) {
                --top;
                continue;
            }
            const int64_t id = number(node);
            const Facts f = stats.facts_of(node.n, slot);
            const Split split = best_split(node, f);
            int64_t n_left = 0, worth = -1;
            if (split.column >= 0) {
                n_left = partition.part(node, f, split);
                worth = criterion.importance(f, partition.left_stats, n_left);
            }
            if (worth < job.min_decrease) { // rows may have changed places: a leaf's order means nothing
                if (job.record) recorder.leaf(id, f);
                ++n_leaves;
                --top;
                continue;
            }
            importance[split.column] += worth;
            if (job.record) record_split(recorder, id, node, split, n_left);
            int32_t *left_link = job.record ? job.record->left + id : nullptr;
            int32_t *right_link = job.record ? job.record->right + id : nullptr;
            const Node left{node.start, n_left, node.depth + 1, derive(node.key, LEFT), left_link};
            const Node other{node.start + n_left, node.n - n_left, node.depth + 1, derive(node.key, RIGHT), right_link};
            const bool left_first = left.n <= other.n; // the smaller child next: the stack stays shallow
            stack[top] = left_first ? other : left;
            stack[top + 1] = left_first ? left : other;
            stats.part(f, partition.left_stats, left_first ? next : slot, left_first ? slot : next);
            ++top;
        }
    }

    // Give a node its number, and write that where its parent is recorded.
    int64_t number(const Node &node) {
        const int64_t id = job.n_threads > 1 ? __atomic_fetch_add(&job.n_nodes, 1, __ATOMIC_RELAXED) : job.n_nodes++;
        if (node.link) *node.link = static_cast<int32_t>(id);
        if (node.depth > depth) depth = node.depth;
        return id;
    }

    Split best_split(const Node &node, const Facts &f) {
        const bool limited = job.max_depth >= 0 && node.depth >= job.max_depth;
        const bool pure = job.impurity == VARIANCE ? equal_targets(node) : f.n_present < 2;
        if (pure || limited || node.n < 2 * job.min_samples_leaf) return Split{};
        return NodeSearch<Code>{*this}.search(node, f);
    }

    // Whether all targets are equal; they may come times their weight.
    bool equal_targets(const Node &node) const {
        const int32_t *sums = numbers[job.n_channels - 1] + node.start, *weights = numbers[0] + node.start;
        for (int64_t i = 1; i < node.n; ++i) {
            const int64_t own = job.n_channels == 1 ? sums[i] : int64_t(sums[i]) * weights[0];
            const int64_t first = job.n_channels == 1 ? sums[0] : int64_t(sums[0]) * weights[i];
            if (own != first) return false;
        }
        return true;
    }

    void record_split(const TreeRecorder<Code> &recorder, int64_t id, const Node &node, const Split &split,
                      int64_t n_left) const {
        int64_t n_missing = 0;
        if (split.how == MISSING_LEFT || split.how == MISSING_RIGHT)
            for (int64_t i = 0; i < node.n; ++i)
                n_missing += this->code(split.column, rows[node.start + i]) == MISSING<Code>;
        recorder.split(id, split, split.how == MAPPED ? this->category_hash(node, split) : 0, n_missing, n_left, node.n);
    }
};
