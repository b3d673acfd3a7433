#!/bin/bash
# PLINK 1.9 takes the text nan of a phenotype or covariate for a value, not for missing.
#
# NA, -9 and even any other word ("foo") are missing there; nan and NaN, as NumPy's savetxt, C and
# `to_csv(na_rep="nan")` write a missing number, are read as a number. All people then count as
# having a phenotype, the p-value of a variant that has nothing to do with it is 0, and a status of 1
# and 2 becomes quantitative. PLINK 2 takes nan for missing. Neither says anything of it.
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

# 60 people, one variant with 0, 1 or 2 copies, a phenotype that has nothing to do with it; 12 have
# none
awk 'BEGIN { for (i = 0; i < 60; i++) { c = (i * 17 % 23) % 3; a = c > 0 ? "G" : "A"; b = c > 1 ? "G" : "A"
    print "F" i, "P" i, 0, 0, 1 + i % 2, 1 + (i % 7 > 3), a, b } }' >study.ped
echo "1 rs1 0 1000" >study.map
plink1 --file study --make-bed --out study >log
for word in NA -9 foo nan NaN; do
    for kind in number status; do
        awk -v word="$word" -v kind="$kind" 'BEGIN { print "FID IID y"; for (i = 0; i < 60; i++)
            print "F" i, "P" i, i % 5 == 0 ? word : \
                kind == "number" ? (i * 37 % 11) / 5 : 1 + (i * 37 % 11 > 5) }' \
            >"$kind.$word.txt"
    done
done

# what the header calls $1, in the line of the variant itself
field() { awk -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
    /ADD/ { print $at; exit }' "$2"; }

{
    for word in NA -9 foo nan NaN; do
        plink1 --bfile study --pheno "number.$word.txt" --linear --allow-no-sex --out a >log
        echo "PLINK 1.9, number, $word: people $(field NMISS a.assoc.linear), p $(field P a.assoc.linear)"
        plink1 --bfile study --pheno "status.$word.txt" --assoc --allow-no-sex --out a >log
        kind=$(grep -q "quantitative" log && echo quantitative || echo case/control)
        echo "PLINK 1.9, status, $word: $kind"
    done
    for word in NA -9 nan NaN; do
        plink2 --bfile study --pheno "number.$word.txt" --pheno-name y --glm allow-no-covars \
            --out b >log
        echo "PLINK 2, number, $word: people $(field OBS_CT b.y.glm.linear)"
    done
} >seen
echo "One would guess: nan is missing, as NA is: 48 people each time, the same p, a status stays one."
cat seen
cat >expected <<'END'
PLINK 1.9, number, NA: people 48, p 0.8683
PLINK 1.9, status, NA: case/control
PLINK 1.9, number, -9: people 48, p 0.8683
PLINK 1.9, status, -9: case/control
PLINK 1.9, number, foo: people 48, p 0.8683
PLINK 1.9, status, foo: case/control
PLINK 1.9, number, nan: people 60, p 0
PLINK 1.9, status, nan: quantitative
PLINK 1.9, number, NaN: people 60, p 0
PLINK 1.9, status, NaN: quantitative
PLINK 2, number, NA: people 48
PLINK 2, number, -9: people 48
PLINK 2, number, nan: people 48
PLINK 2, number, NaN: people 48
END
diff expected seen
