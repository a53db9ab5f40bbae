set -eo pipefail; echo a | grep b | cat; echo never
