package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// grpcConstant serves a constant with grpc-go as it comes. The messages are BytesValue and StringValue, which have the form
// of an answer with one id and of a request.
func grpcConstant(address string) error {
	answer := wrapperspb.Bytes([]byte("12345678"))
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "firn.v1.IDService", Methods: []grpc.MethodDesc{{
		MethodName: "Generate",
		Handler: func(_ any, _ context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var asked wrapperspb.StringValue
			if err := read(&asked); err != nil {
				return nil, err
			}
			return answer, nil
		},
	}}}, nil)
	on, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	return s.Serve(on)
}

// tick is the unit of times in /proc.
const tick = 10 * time.Millisecond

// processorTime returns how long a process has run on all processors.
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // after the name, which may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	var ticks time.Duration
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		ticks += time.Duration(n)
	}
	return ticks * tick, nil
}
