// Trees of best splits on few columns. Compiled once per instruction set.
//
// Twin: srs_ooc/trees/kernel.py, which grows with grow/trees.cpp and walks the tree. The same splits are found here, with the
// same scores, ties and thresholds, from columns that are sorted once: a node's rows stay sorted in every one as they are
// parted.
#include "presorted/subsets.hpp"

namespace srs::SRS_ISA {
namespace {

// One tree, and what it says of rows it was not grown on.
template <typename Code> struct SortedTree : PresortedTree<Code, SortedTree<Code>> {
    using Tree = PresortedTree<Code, SortedTree<Code>>;
    using Tree::held, Tree::splits;
    SortedJob &job;
    const Criterion criterion;
    // Scratch.
    int32_t *places; // [n_columns]
    Code *copies;    // [n_columns][n_rows] of a tiled block

    explicit SortedTree(SortedJob &job)
        : Tree(job), job(job), criterion{job.targets ? VARIANCE : GINI, nullptr, job.root_scale} {}

    size_t carve(char *base) {
        Arena arena{base};
        this->carve_tree(arena, job.n_columns, job.n_fitted, job.n_predicted);
        places = arena.take<int32_t>(job.n_columns);
        copies = arena.take<Code>(job.tiled ? job.n_columns * job.n_rows : 0);
        return arena.used;
    }

    void run() {
        PresortedColumns<Code> &columns = splits.columns;
        if (job.tiled) untile();
        if (!(job.complete = columns.is_complete(job.n_columns))) return;
        for (int64_t j = 0; j < job.n_columns; ++j) places[j] = static_cast<int32_t>(j);
        splits.use(places, job.n_columns);
        const int32_t *fitted = job.fitted;
        for (int64_t j = 0; j < job.n_columns; ++j)
            columns.sort(columns.column(j), [&](int64_t i) { return fitted[i]; }, job.n_fitted, columns.orders + j * job.n_fitted);
        this->grow_tree(job.n_fitted, job.n_predicted, job.tree_key);
    }

    SRS_INLINE bool is_wanted(const HeldNode &) const { return true; }
    SRS_INLINE bool has_enough() const { return false; }
    SRS_INLINE int64_t row_at(uint16_t place) const { return job.predicted[place]; }

    SRS_INLINE uint32_t between(int64_t column, uint32_t low, uint32_t high) const {
        if (!job.values) return (low + high) / 2;
        return CodeValues{job.values, job.n_values - 1}.cut(column, HALFWAY, low, high);
    }

    // Note what a split is worth; `total`: of the rows that go left.
    void note(const HeldNode &node, const Found &split, const uint16_t *order, int64_t total) {
        int64_t whole[2] = {node.n, node.total}, part[MAX_PRESORTED_CLASSES] = {split.n_left, total};
        if (splits.numbers && !job.targets) { // rows of the one class and of the other
            whole[0] -= node.total;
            part[0] -= total;
        } else if (!splits.numbers) {
            splits.of_classes.count(order, split.n_left, part);
        }
        const int64_t *all = splits.numbers ? whole : splits.of_classes.totals, width = job.targets ? 2 : 1;
        const NodeStats f{node.n, 0, job.n_classes, width, nullptr, all, all, 0, node.n, job.targets ? node.total : 0};
        job.importance[split.member] += criterion.importance(f, part, split.n_left);
    }

    // Say what a leaf has to say of the rows to predict in it.
    void end(const HeldNode &node) {
        const double n = static_cast<double>(node.n);
        double own[MAX_PRESORTED_CLASSES];
        if (!splits.numbers) {
            for (int64_t k = 0; k < job.n_classes; ++k) own[k] = static_cast<double>(splits.of_classes.totals[k]) / n;
        } else if (job.targets) {
            own[0] = static_cast<double>(node.total) / n;
        } else {
            own[0] = static_cast<double>(node.n - node.total) / n;
            own[1] = static_cast<double>(node.total) / n;
        }
        for (int32_t i = node.held; i < node.held + node.n_held; ++i)
            for (int64_t k = 0; k < job.n_classes; ++k) job.shares[held.places[i] * job.n_classes + k] = own[k];
    }

  private:
    void untile() {
        const Code *codes = splits.columns.codes;
        for (int64_t j = 0; j < job.n_columns; ++j) {
            const Code *from = codes + j / TILE * TILE * job.n_rows + j % TILE;
            for (int64_t i = 0; i < job.n_rows; ++i) copies[j * job.n_rows + i] = from[i * TILE];
        }
        splits.columns.codes = copies;
    }
};

template <template <typename> class Worker, typename Job> void run(Job &job) {
    const auto with = [&](auto worker) {
        worker.carve(static_cast<char *>(job.scratch));
        worker.run();
    };
    if (job.code_nbytes == 1) with(Worker<uint8_t>(job));
    else with(Worker<uint16_t>(job));
}

} // namespace

void grow_sorted(SortedJob &job) { run<SortedTree>(job); }

size_t sorted_scratch_nbytes(const SortedJob &job) {
    SortedJob copy = job;
    return SortedTree<uint16_t>(copy).carve(nullptr);
}

void judge_subsets(SubsetJob &job) { run<SubsetJudge>(job); }

size_t subset_scratch_nbytes(const SubsetJob &job) {
    SubsetJob copy = job;
    return SubsetJudge<uint16_t>(copy).carve(nullptr);
}

} // namespace srs::SRS_ISA
