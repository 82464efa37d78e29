package firnv1connect_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"connectrpc.com/connect"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memstore"
)

// serve stands for firn serve.
func serve() (url string, stop func()) {
	users := settings.Namespace{Kind: "segment"}
	cfg := server.Config{Settings: settings.Config{Namespaces: map[string]settings.Namespace{"users": users}}, Base: lease.Config{}, Store: memstore.New(nil), Log: slog.New(slog.DiscardHandler)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served, opened := make(chan error, 1), make(chan struct{})
	go func() {
		served <- server.Start(ctx, cfg, server.Listeners{HTTP: listener}, func(*server.Server) { close(opened) })
	}()
	<-opened
	return "http://" + listener.Addr().String(), func() {
		cancel()
		if err := <-served; err != nil {
			panic(err)
		}
	}
}

func ExampleNewIDServiceClient() {
	url, stop := serve() // such as http://127.0.0.1:7070
	defer stop()

	client := firnv1connect.NewIDServiceClient(http.DefaultClient, url)
	count := int32(3)
	request := connect.NewRequest(&firnv1.GenerateRequest{Namespace: "users", Count: &count})
	request.Header().Set("Authorization", "Bearer TOKEN") // if the server requires a token
	answer, err := client.Generate(context.Background(), request)
	if err != nil {
		fmt.Println(connect.CodeOf(err), err)
		return
	}
	fmt.Println(answer.Msg.GetIds())
	// Output: [1 2 3]
}

// A stream returns millions of ids. As runs, a thousand of them take about 20 bytes.
func ExampleIDServiceClient_generateStream() {
	url, stop := serve()
	defer stop()

	client := firnv1connect.NewIDServiceClient(http.DefaultClient, url)
	total := int64(1_000_000)
	stream, err := client.GenerateStream(context.Background(), connect.NewRequest(&firnv1.GenerateStreamRequest{
		Namespace: "users", Total: &total, Form: firnv1.Form_FORM_RUNS,
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := 0
	for stream.Receive() {
		for _, run := range stream.Msg().GetRuns() {
			for id, n := run.GetFirst(), run.GetCount(); n > 0; id, n = id+run.GetStride(), n-1 {
				ids++ // use id here
			}
		}
		ids += len(stream.Msg().GetIds()) // some namespaces do not return runs
	}
	if err := stream.Err(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(ids)
	// Output: 1000000
}
