module github.com/firn-id/firn

go 1.25.0
