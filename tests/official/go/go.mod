module official

go 1.26.8

require github.com/apache/pulsar-client-go v0.19.0 // indirect
