printf 'hello' > f
base64 f; base64 -d <<< aGVsbG8=; echo
sha256sum f; md5sum f; sha1sum < f; cksum f; b2sum -l 128 f
sha256sum f > s; sha256sum -c s; echo x >> f; sha256sum -c s; echo "status $?"
