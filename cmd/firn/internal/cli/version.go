package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set at release time by -ldflags "-X …/cli.version=v1.2.3".
var version = ""

type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := currentVersion()
			return answer(cmd, v, func(out io.Writer) error {
				text := "firn " + v.Version
				if v.Revision != "" {
					text += " (" + v.Revision + ")"
				}
				_, err := fmt.Fprintf(out, "%s, %s, %s\n", text, v.Go, v.Platform)
				return err
			})
		},
	}
	cmd.Flags().Bool("json", false, "print JSON")
	return cmd
}

func currentVersion() versionInfo {
	v := versionInfo{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v.Version == "" && info.Main.Version != "(devel)" {
			v.Version = info.Main.Version
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				v.Revision = setting.Value
			}
		}
	}
	if v.Version == "" {
		v.Version = "development build"
	}
	return v
}
