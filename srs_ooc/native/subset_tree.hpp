// The held-out loss of a tree on a subset of columns: it grows only where some row to predict goes.
// Included by subsets.cpp only, inside its namespace: every clone has its own copy.

constexpr double GIVEN_UP = __builtin_inf();

template <typename Code> struct SubsetTree {
    SubsetJob &job;
    SubsetSplits<Code> splits;
    double loss; // so far
    // Scratch.
    HeldRows held;
    double *errors; // [most_predicted]
    Node *stack;    // [most_fitted + 1]: each row of a tree is in one node that waits

    explicit SubsetTree(SubsetJob &job) : job(job), splits(job) {}

    void carve(Carver &carver) {
        splits.carve(carver);
        held.carve(carver, job.most_predicted);
        errors = carver.take<double>(job.most_predicted);
        stack = carver.take<Node>(job.most_fitted + 1);
    }

    SubsetTree &of_subset(int64_t subset) {
        splits.use(subset);
        return *this;
    }

    // The loss of one split of the rows: infinite where it is more than `most` for certain.
    double grow(int64_t number, double most) {
        ++job.n_trees;
        const uint16_t *rows = job.predicted + job.predicted_bounds[number];
        const auto n_held = static_cast<int32_t>(job.predicted_bounds[number + 1] - job.predicted_bounds[number]);
        const auto n_rows = static_cast<int32_t>(job.n_fitted[number]);
        splits.begin(job.times + number * job.n_rows, n_rows, job.tree_keys[number]);
        held.take_all(n_held);
        loss = 0.0;
        const uint16_t *all = splits.columns.orders;
        Node root{0, n_rows, 0, n_held, 0, job.tree_keys[number], 0};
        int64_t n_waiting = 0;
        if (waits(root, all, rows)) stack[n_waiting++] = root;
        if (splits.few.holds(root)) splits.few.keep(root, all);
        while (n_waiting > 0 && loss <= most) n_waiting = split(stack[n_waiting - 1], rows, n_waiting - 1);
        if (n_waiting > 0) return GIVEN_UP;
        double sum = 0.0;
        for (int32_t i = 0; i < n_held; ++i) sum += errors[i];
        return sum;
    }

  private:
    // Split a node, or end it; return how many nodes wait.
    SRS_INLINE int64_t split(const Node node, const uint16_t *rows, int64_t n_waiting) {
        FewRows &few = splits.few;
        SubsetColumns<Code> &columns = splits.columns;
        const bool is_small = few.holds(node);
        if (!splits.numbers) splits.total_of(is_small ? few.rows + node.start : columns.order_of(0, node), node.n);
        Found best = splits.search(node, few.rows + node.start);
        if (best.member < 0) {
            end(node, rows);
            return n_waiting;
        }
        const uint16_t *order = is_small ? few.rows + node.start : columns.order_of(best.member, node);
        const uint32_t threshold = is_small ? few.part(node, best) : columns.midway(order, best);
        const Code *own = columns.column(best.member);
        const int32_t n_left = held.part(node, [&](uint16_t place) { return own[rows[place]] <= threshold; });
        Node left{node.start, best.n_left, node.held, n_left, node.depth + 1, derive(node.key, LEFT), 0};
        Node right{node.start + best.n_left, node.n - best.n_left, node.held + n_left, node.n_held - n_left, node.depth + 1,
                   derive(node.key, RIGHT), 0};
        const bool right_waits = waits(right, order + best.n_left, rows), left_waits = waits(left, order, rows);
        if (!is_small) {
            if (right_waits && few.holds(right)) few.keep(right, order + best.n_left);
            if (left_waits && few.holds(left)) few.keep(left, order);
            columns.part(node, best, left_waits && !few.holds(left), right_waits && !few.holds(right));
        }
        if (right_waits) stack[n_waiting++] = right;
        if (left_waits) stack[n_waiting++] = left;
        return n_waiting;
    }

    // Whether a node is to be split; `order`: its rows, in any order. A leaf says what it has to say at once.
    bool waits(Node &node, const uint16_t *order, const uint16_t *rows) {
        if (node.n_held == 0) return false;
        node.total = splits.total_of(order, node.n);
        if (!splits.stops(order, node)) return true;
        end(node, rows);
        return false;
    }

    void end(const Node &node, const uint16_t *rows) {
        const int64_t chosen = splits.numbers ? node.total > node.n - node.total : splits.of_classes.most_frequent();
        for (int64_t i = node.held; i < node.held + node.n_held; ++i) {
            const int64_t row = rows[held.places[i]];
            double error = job.labels[row] != chosen;
            if (job.targets) {
                error = static_cast<double>(node.total) / static_cast<double>(node.n) - job.targets[row];
                error = error * error;
            }
            errors[held.places[i]] = error;
            loss += error;
        }
    }
};
