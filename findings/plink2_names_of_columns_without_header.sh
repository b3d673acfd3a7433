#!/bin/bash
# PLINK 2 calls the first column of a phenotype file without a header PHENO1 or PHENO2, by the .fam.
#
# Without a header, columns of --pheno are PHENO1, PHENO2, ... Where the .fam has a phenotype of its
# own, that one is PHENO1, and those of the file go on from PHENO2. The same command then writes
# results of the file's first column to NAME.PHENO1.glm.* beside one .fam and to NAME.PHENO2.glm.*
# beside another, with PHENO1 for something else, and says only how many were loaded. With
# --pheno-col-nums 3 the .fam is not read, and PHENO1 is the file's. PLINK 1.9 takes the file alone;
# its covariates without a header are COV1, ... those of PLINK 2 COVAR1, ...
#
# Debian 12 on x86-64, with its package archive; nothing is installed outside a temporary folder.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -q update >log 2>&1 || true
apt-get -q download plink1.9=1.90~b6.26-220402-1 plink2=2.00~a3.5-220809+dfsg-1+b2 \
    libblas3 liblapack3 libgfortran5 libquadmath0 libdeflate0 >log 2>&1 || { cat log; exit 1; }
for one in *.deb; do dpkg-deb -x "$one" unpacked; done
lib=$folder/unpacked/usr/lib
export LD_LIBRARY_PATH=$lib/x86_64-linux-gnu:$lib/x86_64-linux-gnu/blas:$lib/x86_64-linux-gnu/lapack
plink1() { "$lib/debian-med/bin/plink1.9" "$@"; }
plink2() { "$lib/plink2/plink2-sse3" "$@"; }
plink1 --version
plink2 --version

# 40 people, one variant; a status in the .fam of one data set, none in that of the other; a file
# of a number, without a header
awk 'BEGIN { for (i = 0; i < 40; i++) { c = (i * 17 % 23) % 3; a = c > 0 ? "G" : "A"; b = c > 1 ? "G" : "A"
    print "F" i, "P" i, 0, 0, 1 + i % 2, 1 + (i % 7 > 3), a, b } }' >with.ped
awk '{ $6 = -9; print }' with.ped >without.ped
awk '{ print $1, $2, (NR * 37 % 11) / 5 }' with.ped >pheno.txt
for one in with without; do
    echo "1 rs1 0 1000" >$one.map
    plink1 --file $one --make-bed --out $one >log
done

{
    for one in with without; do
        plink2 --bfile $one --pheno pheno.txt --glm allow-no-covars --out $one >log
        echo "PLINK 2, .fam $one a phenotype, the file's number is in: $(ls $one.*.glm.linear)"
    done
    plink2 --bfile with --pheno pheno.txt --pheno-col-nums 3 --glm allow-no-covars --out third >log
    echo "PLINK 2, --pheno-col-nums 3: $(ls third.*.glm.*)"
    plink2 --bfile with --covar pheno.txt --write-covar --out b >log
    echo "PLINK 2, covariates: $(head -1 b.cov | tr '\t' ' ')"
    plink1 --bfile with --covar pheno.txt --write-covar --out a >log
    echo "PLINK 1.9, covariates: $(head -1 a.cov | sed 's/ *$//')"
} >seen
echo "One would guess: the first column of a file without a header is PHENO1 wherever it is used."
cat seen
cat >expected <<'END'
PLINK 2, .fam with a phenotype, the file's number is in: with.PHENO2.glm.linear
PLINK 2, .fam without a phenotype, the file's number is in: without.PHENO1.glm.linear
PLINK 2, --pheno-col-nums 3: third.PHENO1.glm.linear
PLINK 2, covariates: #FID IID COVAR1
PLINK 1.9, covariates: FID IID COV1
END
diff expected seen
