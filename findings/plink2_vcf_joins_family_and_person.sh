#!/bin/bash
# PLINK 2 finds nobody of its own phenotype file in the VCF that it exported from the same .bed.
#
# --export vcf (and --recode vcf of PLINK 1.9) names samples FID_IID wherever there is a family. Read
# back, the whole is the IID and the family is gone, so that a phenotype file of FID and IID has "No
# entries"; --id-delim _ has to be said, which splits ids that hold a '_' of their own. PLINK 1.9 splits
# by itself. One would guess that a file that a program wrote is the same people to it.
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

for i in $(seq 1 40); do echo "F$i P$i 0 0 1 $((1 + i % 2)) A $( ((i % 3)) && echo A || echo G)"; done >p.ped
echo "1 rs1 0 1000" >p.map
plink1 --file p --make-bed --out p >log
for i in $(seq 1 40); do echo "F$i P$i $((i * 37 % 11)).5"; done >pheno.txt

{
    plink1 --bfile p --recode vcf --out one >log
    plink2 --bfile p --export vcf --out two >log
    for one in one two; do echo "$one.vcf: $(awk '/^#CHROM/ { print $10, $11 }' $one.vcf)"; done
    plink2 --vcf two.vcf --pheno pheno.txt --make-just-psam --out back >log 2>&1 || grep -c "^Error: No entries" log
    plink2 --vcf two.vcf --id-delim _ --pheno pheno.txt --make-just-psam --out split >log 2>&1
    grep -v '^#' split.psam | head -1 | tr '\t' ' '
    plink1 --vcf two.vcf --make-just-fam --out own >log
    head -1 own.fam | cut -d ' ' -f 1,2
} | tee found
cat >expected <<'OUT'
one.vcf: F1_P1 F2_P2
two.vcf: F1_P1 F2_P2
1
F1 P1 NA 4.5
F1 P1
OUT
diff expected found
