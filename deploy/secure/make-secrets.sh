#!/bin/sh
# Make the secrets of broker.conf and proxy.conf: an authority, a certificate of both servers, the
# key of tokens, and the tokens of an administrator and of the proxy.
#   sh deploy/secure/make-secrets.sh FOLDER [DNS:name,IP:address]
# Needs openssl 3 and floodgate-admin. What is there already is not made again.
set -eu
folder=$1
names=${2:-DNS:broker,DNS:proxy,DNS:localhost,IP:127.0.0.1}
mkdir -p "$folder"
# The folder lets nobody in. The files may be read, since a container's user is nobody here.
chmod 0700 "$folder"
cd "$folder"
ec="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
test -e ca.pem || openssl req -x509 $ec -days 3650 -subj /CN=floodgate-authority \
    -addext keyUsage=critical,keyCertSign,cRLSign -keyout ca.key -out ca.pem
test -e server.pem || openssl req -x509 -CA ca.pem -CAkey ca.key $ec -days 365 -subj /CN=floodgate \
    -addext basicConstraints=critical,CA:FALSE -addext "subjectAltName=$names" \
    -keyout server.key -out server.pem
test -e token.key || floodgate-admin tokens create-secret-key --output token.key
for role in admin proxy; do
    test -e $role.token ||
        floodgate-admin tokens create --secret-key file:token.key --subject $role > $role.token
done
chmod 0644 ./*
chmod 0600 ca.key admin.token
