#!/bin/sh
# Makes what compose.yaml reads from files: passwords, addresses that hold them, the key of the credentials.
#   sudo sh deploy/secrets.sh             with Docker
#   podman unshare sh deploy/secrets.sh   with podman that is not root
# What is there already stays as it is: a key that is replaced opens nothing that it sealed.
set -eu
umask 077
cd "$(dirname "$0")"
mkdir -p secrets
cd secrets

random() {
    head -c "$1" /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

keep() { # NAME, its text on standard input
    if [ -e "$1" ]; then
        cat >/dev/null
        echo "kept: secrets/$1"
    else
        cat >"$1"
        echo "made: secrets/$1"
    fi
}

random 24 | keep postgres-password
random 24 | keep nats-password
random 24 | keep nats-worker-password
head -c 32 /dev/urandom | base64 | keep key

database="postgresql://noetl:$(cat postgres-password)@postgres:5432/noetl"
queue="nats://server:$(cat nats-password)@nats:4222"
printf 'db = "%s"\nqueue = "%s"\n' "$database" "$queue" | keep server.toml
# A worker never sees the database: its results go through the queue's object store.
printf 'queue = "nats://worker:%s@nats:4222"\n' "$(cat nats-worker-password)" | keep worker.toml
printf 'SERVER_PASSWORD: "%s"\nWORKER_PASSWORD: "%s"\n' "$(cat nats-password)" "$(cat nats-worker-password)" | keep nats-users.conf

# Readable by the user of the image, and by nobody else: NoETL refuses a key that others can read.
chown 10001:10001 key server.toml worker.toml
chmod 400 key server.toml worker.toml
