package cli

import (
	"context"
	"fmt"
	"path/filepath"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/stopnotice"
)

// sharedFolder is the folder that Numaflow mounts into all of its containers of a pod.
const sharedFolder = "/var/run/numaflow"

// stopNoticeCommand runs in a container of spec.sidecars, which receives signals together with Numaflow's own.
func (c *CLI) stopNoticeCommand() *ucli.Command {
	const folder = "dir"
	return &ucli.Command{
		Name:  "stop-notice",
		Usage: "wait for SIGTERM, and tell the handlers of this pod that it is being stopped",
		Description: "Run it in a container of spec.sidecars that mounts the volume var-run-numaflow. Kubernetes signals that container together with " +
			"Numaflow's own, and the containers of handlers only later. Programs that use numathrottle.StopContext, http-sink and llm-map heed it.",
		Flags: []ucli.Flag{&ucli.StringFlag{Name: folder, Value: sharedFolder, Usage: "the folder that the containers of the pod share"}},
		Action: func(ctx context.Context, cmd *ucli.Command) error {
			dir := cmd.String(folder)
			if !filepath.IsAbs(dir) {
				return fmt.Errorf("%s is %.60q (--%s), allowed: an absolute path", folder, dir, folder)
			}
			if err := stopnotice.Clear(dir); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(c.Out, "waiting for SIGTERM, then %s is written\n", stopnotice.Path(dir))
			<-ctx.Done()
			return stopnotice.Post(dir)
		},
	}
}
