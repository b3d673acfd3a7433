#!/bin/bash
# The package bgen calls every sample 0 where PLINK 2 wrote the .sample file.
#
# Its columns are ID_1 (the family, 0 where there is none), ID_2 (the person), missing, sex. One would
# guess that `BgenReader(path, sample_path).samples` are the persons, or say the family too, and that
# ids which are all the same are refused. They are the first column alone. Without the .sample file
# samples of a file that holds no ids are called 0, 1, 2, without a word.
#
# Debian 12 on x86-64, with its package archive and PyPI; nothing is installed outside a temporary
# folder.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -q update >log 2>&1 || true
apt-get -q download plink2=2.00~a3.5-220809+dfsg-1+b2 libblas3 liblapack3 libgfortran5 \
    libquadmath0 libdeflate0 >log 2>&1 || { cat log; exit 1; }
for one in *.deb; do dpkg-deb -x "$one" unpacked; done
lib=$folder/unpacked/usr/lib
export LD_LIBRARY_PATH=$lib/x86_64-linux-gnu:$lib/x86_64-linux-gnu/blas:$lib/x86_64-linux-gnu/lapack
plink2() { "$lib/plink2/plink2-sse3" "$@"; }
python3 -m venv venv
venv/bin/pip install -q bgen==1.10.3 numpy==2.4.4 >log 2>&1 || { cat log; exit 1; }

{
    echo "##fileformat=VCFv4.2"
    echo "##contig=<ID=1>"
    echo '##FORMAT=<ID=GT,Number=1,Type=String,Description="genotype">'
    printf '#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tann\tbob\tcid\n'
    printf '1\t100\trs1\tA\tG\t.\t.\t.\tGT\t0/0\t0/1\t1/1\n'
} >a.vcf
plink2 --vcf a.vcf --export bgen-1.1 --out a >log
cat a.sample
echo "One would guess: ann bob cid"
cat >seen.py <<'END'
from bgen import BgenReader

print("with:", *BgenReader("a.bgen", "a.sample").samples)
print("without:", *BgenReader("a.bgen").samples)
END
venv/bin/python seen.py | tee seen
cat >expected <<'END'
with: 0 0 0
without: 0 1 2
END
diff expected seen
