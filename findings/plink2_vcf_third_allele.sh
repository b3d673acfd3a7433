#!/bin/bash
# PLINK 2 overlooks a missing third allele in the text of a VCF, not in the BCF of the same records.
#
# A genotype of three alleles is missing there (0/0/1), and with --vcf-half-call missing so is one of
# which an allele is (0/.). One would guess that 0/0/. is missing too. From a BCF it is; from a VCF it
# is taken for 0/0, 0/1/. for 0/1, without a word.
#
# Debian 12 on x86-64, with its package archive; nothing is installed outside a temporary folder.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -q update >log 2>&1 || true
apt-get -q download plink2=2.00~a3.5-220809+dfsg-1+b2 bcftools=1.16-1 libhts3 libgsl27 libgslcblas0 \
    libblas3 liblapack3 libgfortran5 libquadmath0 libdeflate0 >log 2>&1 || { cat log; exit 1; }
for one in *.deb; do dpkg-deb -x "$one" unpacked; done
lib=$folder/unpacked/usr/lib
export LD_LIBRARY_PATH=$lib/x86_64-linux-gnu:$lib/x86_64-linux-gnu/blas:$lib/x86_64-linux-gnu/lapack
plink2() { "$lib/plink2/plink2-sse3" "$@"; }
plink2 --version

{
    echo "##fileformat=VCFv4.2"
    echo "##contig=<ID=1>"
    echo '##FORMAT=<ID=GT,Number=1,Type=String,Description="genotype">'
    printf '#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ta\tb\tc\td\te\tf\n'
    printf '1\t100\trs1\tA\tG\t.\t.\t.\tGT\t0/0\t0/.\t0/0/1\t0/0/.\t0/1/.\t1/1/.\n'
} >a.vcf
"$folder/unpacked/usr/bin/bcftools" view -Ob -o a.bcf a.vcf
for kind in vcf bcf; do
    plink2 "--$kind" "a.$kind" --vcf-half-call missing --export A --out "$kind" >log
    echo "$kind: $(tail -n +2 "$kind.raw" | cut -f 7 | paste -sd " ")"
done >seen
echo "One would guess, for 0/0 0/. 0/0/1 0/0/. 0/1/. 1/1/.: 2 NA NA NA NA NA both times."
cat seen
cat >expected <<'END'
vcf: 2 NA NA 2 1 0
bcf: 2 NA NA NA NA NA
END
diff expected seen
