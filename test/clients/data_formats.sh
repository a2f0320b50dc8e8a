# Formats that training data comes in, by their libraries, on two mounts: HDF5, zarr, LMDB, mapped arrays.
. "$ROOT/test/cluster/lib.sh"
for module in h5py zarr lmdb; do
  /usr/bin/python3 -c "import $module" 2>/dev/null || skip "there is no python3-$module"
done
start_cluster 4 "$WORK/a" "$WORK/b"
"$tfs" setstripe -c 4 -S 64K "$WORK/a"
timeout 500 /usr/bin/python3 "$ROOT/test/clients/data_formats.py" "$WORK/a" "$WORK/b"
